"""What is written: whole or not at all, never over the events, and over nothing else unless requested."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cerite
from cerite.core.errors import StreamError, in_plain_words
from tests.command import cerite as command

A = "SELECT * FROM S WHERE A"
EVENTS = "type,v\nA,1\nB,2\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "events.csv").write_text(EVENTS)
    (tmp_path / "in" / "more.csv").write_text(EVENTS)
    return tmp_path


def aliases(folder: Path) -> Iterator[tuple[str, str]]:
    """Inputs, and outputs that must not be written while they are read."""
    events = folder / "in" / "events.csv"
    (folder / "soft.csv").symlink_to(events)
    os.link(events, folder / "hard.csv")
    (folder / "way").symlink_to(folder / "in")
    yield str(events), str(events)
    yield str(events), str(folder / "in" / ".." / "in" / "events.csv")
    yield str(events), os.path.relpath(events)
    yield str(events), str(folder / "soft.csv")
    yield str(events), str(folder / "hard.csv")
    yield str(folder / "soft.csv"), str(events)
    for target in ("in/events.csv", "in/new.csv", "way/new.csv", "in/deep/new.parquet"):
        yield str(folder / "in"), str(folder / target)
    for target in ("in/events.csv", "in/new.csv", "way/new.csv", "hard.csv"):
        yield str(folder / "in" / "*.csv"), str(folder / target)
    yield str(folder / "**" / "*.csv"), str(folder / "in" / "new.csv")


@pytest.mark.parametrize("more", [(), ("--overwrite",)])
def test_an_output_among_the_events_is_refused_by_whatever_path(folder: Path, more: tuple[str, ...]) -> None:
    for events, target in aliases(folder):
        done = command("run", A, events, "-o", target, *more, code=1)
        assert "is among the events that are read" in done.stderr
        assert (folder / "in" / "events.csv").read_text() == EVENTS
        assert not (folder / "in" / "new.csv").exists()


def test_a_file_beside_the_pattern_of_the_events_may_be_written(folder: Path) -> None:
    command("run", A, str(folder / "in" / "*.csv"), "-o", str(folder / "in" / "matches.parquet"))
    assert pq.read_table(folder / "in" / "matches.parquet").num_rows == 2


def test_an_output_that_exists_is_replaced_only_if_asked(folder: Path) -> None:
    events, target = str(folder / "in" / "events.csv"), folder / "matches.jsonl"
    target.write_text("precious")
    done = command("run", A, events, "-o", str(target), code=1)
    assert "exists already" in done.stderr
    assert "--overwrite" in done.stderr
    assert target.read_text() == "precious"
    command("run", A, events, "-o", str(target), "--overwrite")
    assert target.read_text().startswith('{"match":')


def test_what_cannot_be_written_is_refused_before_anything_is_read(folder: Path) -> None:
    for target, said in (("m.xyz", "unknown output format"), ("none/m.csv", "there is no folder")):
        done = command("run", A, str(folder / "in" / "events.csv"), "-o", str(folder / target), code=1)
        assert said in done.stderr


@pytest.mark.parametrize("name", ["to_parquet", "to_csv", "to_jsonl"])
def test_python_replaces_a_file_but_never_one_that_it_reads(name: str, folder: Path) -> None:
    events = folder / "in" / "events.csv"
    (folder / "link").symlink_to(events)
    for order in ((), ("v",)):
        matches = cerite.query(A).run(str(folder / "in"), order_by=order)
        for target in (events, folder / "link"):
            with pytest.raises(StreamError, match="is being read"):
                getattr(matches, name)(target)
        assert events.read_text() == EVENTS
    target = folder / "matches"
    target.write_text("old")
    target.chmod(0o640)
    assert getattr(matches, name)(target) == 2
    assert target.read_bytes() != b"old"
    assert target.stat().st_mode & 0o777 == 0o640
    both = cerite.query("SELECT * FROM S, T WHERE A").run(
        {"S": events, "T": folder / "in" / "more.csv"}, order_by=["v"]
    )
    with pytest.raises(StreamError, match="is being read"):
        getattr(both, name)(folder / "in" / "more.csv")


def test_the_file_behind_a_link_is_replaced_not_the_link(folder: Path) -> None:
    (folder / "real.csv").write_text("old")
    (folder / "link.csv").symlink_to(folder / "real.csv")
    cerite.query(A).run(pa.table({"type": ["A"]})).to_csv(folder / "link.csv")
    assert (folder / "link.csv").is_symlink()
    assert (folder / "real.csv").read_text().startswith("start,end")


def test_a_pipe_is_written_to(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with subprocess.Popen(["cat", str(folder / "pipe")], stdout=subprocess.PIPE, text=True) as reader:
        cerite.query(A).run(pa.table({"type": ["A"]})).to_csv(folder / "pipe")
        assert reader.communicate()[0].startswith("start,end")


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError, MemoryError])
@pytest.mark.parametrize("name", ["to_parquet", "to_csv", "to_jsonl"])
def test_a_write_that_breaks_off_leaves_everything_as_it_was(
    name: str, failure: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matches = cerite.query("SELECT * FROM S WHERE A+").run(pa.table({"type": ["A"] * 30}))
    chunks = type(matches).chunks

    def broken(self: Any) -> Iterator[Any]:
        for number, chunk in enumerate(chunks(self)):
            if number == 2:
                raise failure
            yield chunk

    monkeypatch.setattr(type(matches), "chunks", broken)
    (tmp_path / "old").write_text("old")
    for target in ("old", "new"):
        with pytest.raises(failure):
            getattr(matches, name)(tmp_path / target)
    assert [each.name for each in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text() == "old"


def test_an_interrupted_command_says_so_in_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    events = tmp_path / "events.parquet"
    pq.write_table(pa.table({"type": ["A"] * 1000}), events)
    run = [sys.executable, "-m", "cerite", "run", "SELECT * FROM S WHERE A+", str(events), "--engine", "local"]
    with subprocess.Popen(
        [*run, "-o", str(tmp_path / "m.jsonl")], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        begun = time.monotonic()
        while not any(each.suffix == ".part" and each.stat().st_size for each in tmp_path.iterdir()):
            assert time.monotonic() - begun < 200
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert [line for line in err.splitlines() if not line.startswith("cerite:")] == ["interrupted"]
    assert [each.name for each in tmp_path.iterdir()] == ["events.parquet"]


def interrupted(*_: Any, **__: Any) -> None:
    """What Numba makes of Ctrl-C that reaches its dispatcher."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as error:
        raise SystemError("CPUDispatcher(…) returned a result with an exception set") from error


def test_an_interrupt_that_a_kernel_turned_into_an_error_is_one_again() -> None:
    with pytest.raises(KeyboardInterrupt), in_plain_words("count"):
        interrupted()
    with pytest.raises(SystemError), in_plain_words("count"):
        raise SystemError("something else")


def test_the_command_line_tells_an_interrupted_kernel_as_an_interrupt(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cerite.engine.engines.Counter", interrupted)
    done = command("run", A, str(folder / "in"), "--engine", "local", "--count", code=130)
    assert done.stderr == "interrupted\n"


def test_an_interrupt_that_the_compiler_swallowed_is_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swallowed(*_: Any, **__: Any) -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise RuntimeError("no compiled object yet for <Library>")

    monkeypatch.setattr("cerite.engine.engines.Counter", swallowed)
    before = signal.getsignal(signal.SIGINT)
    done = command("run", A, str(folder / "in"), "--engine", "local", "--count", code=130)
    assert done.stderr == "interrupted\n"
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("where", ["cerite.engine.engines.Recogniser", "cerite.engine.engines.Counter"])
def test_memory_that_runs_out_is_reported_with_a_remedy(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise pa.ArrowMemoryError("malloc of size 9 failed")

    monkeypatch.setattr(where, broken)
    matches = cerite.query(A).run(pa.table({"type": ["A"]}))
    with pytest.raises(
        StreamError, match=r"not enough memory to (find|count) the matches\nhint: give the query a window"
    ):
        (list if "Recogniser" in where else type(matches).count)(matches)


HINTS = {
    "SELECT * FROM S WHERE A ; B WITHIN 5 seconds": ((), "hint: name it: --time …"),
    "SELECT * FROM S WHERE A ; B": (("--time", "v"), "hint: sort by it first, or let Cerite sort: --order-by v"),
    "SELECT * FROM S WHERE A ; C WITHIN 5 [v]": ((), "in its order; sort by it: --order-by …"),
}


@pytest.mark.parametrize("query", HINTS)
def test_hints_of_the_command_line_name_its_own_options(query: str, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("type,v\nA,2\nA,1\n")
    options, hint = HINTS[query]
    assert hint in command("run", query, str(tmp_path / "events.csv"), *options, code=1).stderr


def test_hints_of_python_name_its_keywords() -> None:
    with pytest.raises(StreamError, match="hint: name it: time=…"):
        cerite.query("SELECT * FROM S WHERE A ; B WITHIN 5 seconds").run(pa.table({"type": ["A"]}))
    with pytest.raises(StreamError, match=r"let Cerite sort: order_by=\['v'\]"):
        cerite.query(A).run(pa.table({"type": ["A", "A"], "v": [2, 1]}), time="v").count()


def test_the_table_shows_as_many_matches_as_asked(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("type\n" + 30 * "A\n")
    events = str(tmp_path / "events.csv")
    assert command("run", A, events).stdout.endswith("30 matches, the first 20 shown\n")
    shown = command("run", A, events, "--show", "3").stdout
    assert shown.endswith("30 matches, the first 3 shown\n")
    assert "│ 2 " in shown
    assert "│ 3 " not in shown
    assert command("run", A, events, "--show", "0").stdout == "30 matches\n"
    assert command("run", A, events, "--show", "100").stdout.endswith("30 matches\n")


def test_matches_are_written_to_open_files_too(tmp_path: Path) -> None:
    matches = cerite.query(A).run(pa.table({"type": ["A"]}))
    with open(tmp_path / "m.parquet", "wb") as out:
        assert matches.to_parquet(out) == 1
    assert pq.read_table(tmp_path / "m.parquet").equals(matches.to_arrow())


@pytest.mark.parametrize("target", [None, 5, "a\0b", "/proc/nowhere.csv"])
@pytest.mark.parametrize("name", ["to_parquet", "to_csv", "to_jsonl"])
def test_what_is_no_file_is_refused(name: str, target: Any) -> None:
    with pytest.raises(StreamError, match="cannot be written"):
        getattr(cerite.query(A).run(pa.table({"type": ["A"]})), name)(target)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "time": ({"time": 5}, "`time` is the name of one column, not 5"),
    "time as a list": ({"time": ["v"]}, "`time` is the name of one column"),
    "type": ({"type": 5}, "`type` is the name of one column"),
    "position": ({"position": 5}, "`position` is the name of one column"),
    "order_by": ({"order_by": 5}, "`order_by` names columns, not 5"),
    "order_by as numbers": ({"order_by": [5]}, "`order_by` names columns"),
    "semantics": ({"semantics": "x"}, "there is no semantics 'x'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_options_of_a_wrong_kind_are_refused_in_words(name: str) -> None:
    options, said = WRONG[name]
    with pytest.raises(cerite.CeriteError, match=said):
        cerite.query(A).run(pa.table({"type": ["A"], "v": [1]}), **options)


def test_no_order_is_no_order() -> None:
    assert cerite.query(A).run(pa.table({"type": ["A"]}), order_by=None).count() == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("index", ["x", 0.5, None])
def test_an_index_that_is_none_is_refused_with_what_to_write(index: Any) -> None:
    with pytest.raises(StreamError, match=r"matches are numbered(.|\n)*matches\[0\]"):
        cerite.query(A).run(pa.table({"type": ["A"]}))[index]


@pytest.mark.parametrize("count", [-1, "x", 1.5, None])
def test_a_head_that_is_no_number_is_refused(count: Any) -> None:
    with pytest.raises(StreamError, match="head"):
        cerite.query(A).run(pa.table({"type": ["A"]})).head(count)


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("to_parquet", "x.csv"), ("to_parquet", "x.JSON"), ("to_csv", "x.parquet"), ("to_csv", "x.tsv"),
        ("to_csv", "x.csv.gz"), ("to_json", "x.jsonl"), ("to_json", "x.csv"), ("to_jsonl", "x.parquet"),
    ],
)  # fmt: skip
def test_a_file_is_not_called_what_it_is_not(method: str, name: str, tmp_path: Path) -> None:
    matches = cerite.query("SELECT * FROM S WHERE A").run([{"type": "A"}])
    with pytest.raises(cerite.CeriteError, match=f"`{name}` would be .*, and its ending says something else"):
        getattr(matches, method)(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("to_parquet", "x"), ("to_parquet", "x.2024"), ("to_csv", "x.txt"), ("to_csv", "X.CSV"), ("to_jsonl", "x.json"),
        ("to_jsonl", "x.ndjson"), ("to_json", "x.out"),
    ],
)  # fmt: skip
def test_an_ending_that_says_nothing_is_fine(method: str, name: str, tmp_path: Path) -> None:
    matches = cerite.query("SELECT * FROM S WHERE A").run([{"type": "A"}])
    assert getattr(matches, method)(tmp_path / name) == 1


def test_a_stream_of_the_caller_may_be_called_anything(tmp_path: Path) -> None:
    matches = cerite.query("SELECT * FROM S WHERE A").run([{"type": "A"}])
    with open(tmp_path / "x.parquet", "w", encoding="utf-8") as out:
        assert matches.to_csv(out) == 1
