"""The benchmark suite itself: its streams are what they say, and a quick run gives every column. Nothing is timed."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import cerite
from bench import absences, aggregates, cliffs, first, groups, homes, measures, publish, stocks, taxis, threads
from bench.plots import CHARTS, plots
from bench.register_patterns import WINDOWS, chosen_registers, register_workloads
from bench.report import FRESH, PAGE, fresh, page, read_results
from bench.run import main
from bench.stock_figures import COUNTS, DAY_EVENTS, NAMES
from bench.streams import Stream, home_stream, stock_stream, taxi_stream
from bench.targets import outcomes, register_outcomes
from bench.workloads import WIDTHS, chosen, workloads
from cerite.engine.events.rows import Columns

EVENTS = 150_000


def generated_stocks(events: int) -> Stream:
    return stock_stream(events, generated=True)


STREAMS: list[tuple[Callable[[int], Stream], pa.Schema]] = [
    (stock_stream, stocks.SCHEMA),
    (generated_stocks, stocks.SCHEMA),
    (home_stream, homes.SCHEMA),
    (taxi_stream, taxis.SCHEMA),
]


@pytest.mark.parametrize(("make", "schema"), STREAMS)
def test_streams_are_deterministic_sorted_and_typed(make: Callable[[int], Stream], schema: pa.Schema) -> None:
    stream = make(EVENTS)
    assert stream.table.num_rows == EVENTS
    assert stream.table.schema == schema
    assert stream.origin in ("generated", "real day, repeated")
    assert stream.table.equals(make(EVENTS).table)
    assert stream.table.slice(0, 1000).equals(make(1000).table)
    assert (np.diff(stream.table.column(stream.time).to_numpy()) >= 0).all()
    assert not any(column.null_count for column in stream.table.columns)


@pytest.mark.parametrize("generated", [False, True])
def test_stock_days_follow_each_other(generated: bool) -> None:
    table = stock_stream(2 * DAY_EVENTS + 10, generated=generated).table
    times, ids = table.column("stock_time").to_numpy(), table.column("id").to_numpy()
    assert times[DAY_EVENTS] > times[DAY_EVENTS - 1]
    assert ids[2 * DAY_EVENTS] > ids[DAY_EVENTS] > ids[0]


def test_stock_rates() -> None:
    table = stock_stream(DAY_EVENTS, generated=True).table
    figures = {
        row["values"]: row["counts"] for row in pc.value_counts(table.column("name").cast(pa.string())).to_pylist()
    }
    for name, expected in zip(NAMES, COUNTS, strict=True):
        assert figures[name] == pytest.approx(expected, rel=0.1)
    sells = pc.mean(pc.equal(table.column("type").cast(pa.string()), "SELL").cast(pa.int8())).as_py()
    assert sells == pytest.approx(0.5, abs=0.02)
    times = table.column("stock_time").to_numpy()
    assert (np.diff(times) == 0).mean() == pytest.approx(0.4725, abs=0.02)
    in_window = np.arange(times.size) - np.searchsorted(times, times - 10_000)
    assert in_window.mean() == pytest.approx(131, rel=0.15)
    msft = pc.filter(table.column("price"), pc.equal(table.column("name").cast(pa.string()), "MSFT")).to_numpy()
    assert 25.9 < msft.mean() < 26.1


def test_home_rates() -> None:
    table = home_stream(500_000).table
    times = table.column("plug_timestamp").to_numpy()
    assert times.size / (times[-1] - times[0]) == pytest.approx(85, rel=0.05)
    assert len(table.column("plug_id").unique()) == 85
    assert sorted(table.column("household_id").unique().to_pylist()) == list(range(17))
    assert pc.mean(table.column("value")).as_py() == pytest.approx(76, rel=0.2)


def test_taxi_rates() -> None:
    table = taxi_stream(500_000).table
    times = table.column("dropoff_datetime").to_numpy()
    assert times.size / (times[-1] - times[0]) == pytest.approx(5.49, rel=0.05)
    assert set(taxis.TOURED) <= set(table.column("pickup_loc").combine_chunks().dictionary.to_pylist())
    assert len(taxis.zone_names()) == len(set(taxis.zone_names())) == 250


def test_every_workload_of_the_paper_is_there() -> None:
    names = {each.name for each in workloads()}
    sequences = {f"{letter}{n}{prime}" for letter in "SHT" for n in (3, 6, 9, 12, 24) for prime in ("", "'")}
    wide = {f"S3' at {'T' if k == 1 else f'{k}T'}" for k in WIDTHS}
    assert sequences | wide | {f"Q{n}" for n in range(1, 8)} <= names
    assert len(names) == len(workloads())
    assert [each.name for each in chosen("Q1,windows")][-1] == "Q1"
    assert "WITHIN 1000000 [stock_time]" in chosen("S3' at 100T")[0].text


def test_a_quick_run_gives_every_column(tmp_path: Path) -> None:
    out = tmp_path / "papers.json"
    assert main(["--quick", "--events", "20000", "--only", "S3", "--out", str(out)]) == 0
    result = json.loads(out.read_text(encoding="utf-8"))
    (row,) = result["workloads"]
    rates = {f"{name}_rate" for name in ("update", "count", "arrow", "conditions", "polars", "numpy", "match")}
    assert rates | {"matches", "occurrences", "update_mb", "count_mb", "events", "origin", "arrow_note"} <= row.keys()
    assert all(row[name] > 0 for name in rates)
    assert int(row["matches"]) >= row["occurrences"] > 0
    assert {"processor", "cores", "date", "polars"} <= result["machine"].keys()
    assert {"suite", "title", "commit", "code", "repeats"} <= result.keys()
    assert reported(tmp_path).count("| S3 |") == 1
    assert ET.parse(tmp_path / "charts" / "papers-core.svg").getroot().tag.endswith("svg")


def reported(folder: Path) -> str:
    """The page that `report` renders of a folder's results; its charts are drawn as well."""
    page = folder / "page.md"
    arguments = ["report", "--results", str(folder), "--out", str(page), "--charts", str(folder / "charts")]
    assert main(arguments) == 0
    return page.read_text(encoding="utf-8")


def test_the_published_page_is_what_the_committed_results_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(read_results()), "run `python -m bench report`"
    assert FRESH.read_text(encoding="utf-8") == fresh(read_results()), "run `python -m bench report`"


@pytest.mark.parametrize("name", sorted(read_results()))
def test_published_results_say_where_when_and_from_what_they_come(name: str) -> None:
    whole = read_results()[name]
    for result in whole.get("parts", {name: whole}).values():  # live streams on Spark are measured in parts
        assert result["machine"]["processor"] in PAGE.read_text(encoding="utf-8")
        assert re.match(r"\d{4}-\d\d-\d\d", result["machine"]["date"])
        assert re.search(r"\b[0-9a-f]{7}\b", result["commit"])
        assert result.get("workloads") or result["rows"]


def test_every_published_figure_of_a_row_is_on_the_page() -> None:
    row = {
        "name": "S3", "group": "core", "events": 5, "origin": "generated", "matches": "12345", "occurrences": 678,
        "update_rate": 1.1e6, "count_rate": 2.2e6, "arrow_rate": None, "conditions_rate": 3.3e6, "polars_rate": 4.4e6,
        "numpy_rate": 5.5e5, "update_mb": 6.0, "count_mb": 7.0,
    }  # fmt: skip
    failed = {"name": "S6", "group": "core", "events": 5, "error": "took more than 1800 s"}
    result = {
        "suite": "papers", "title": "A run", "machine": {"date": "2026-01-02"}, "commit": "abc1234", "code": "d1g35t",
        "repeats": 3, "workloads": [row, failed], "growth": [],
    }  # fmt: skip
    text = page({"papers": result})
    assert "| S3 | 12,345 | 678 | 1.1 | 2.2 | skipped | 3.3 | 4.4 | 0.55 | 6 | 7 |" in text
    assert "| S6 | took more than 1800 s |" in text
    assert "Date 2026-01-02; best of 3; commit abc1234; sources d1g35t." in text
    assert "### A run" in text
    assert "No results yet." in text  # of registers


def test_an_unknown_workload_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "S4", "--out", str(tmp_path / "x.json")]) == 2
    assert "S4" in capsys.readouterr().out
    assert not (tmp_path / "x.json").exists()


def test_targets_are_judged() -> None:
    rows = [
        {"name": "S3'", "group": "core", "update_rate": 15e6, "count_rate": 15e6},
        {"name": "S24'", "group": "core", "update_rate": 5e6, "count_rate": 3e6},
        {"name": "S3", "group": "core", "count_rate": 30e6, "events": 5_000_000},
    ]
    growth = [{"events": n, "count_rate": 1e7, "count_mb": 20.0, "update_mb": 20.0} for n in (1_000_000, 20_000_000)]
    assert [each.met for each in outcomes(rows, growth)] == [True, False, True, True]


def test_every_pattern_of_the_srt_paper_is_there() -> None:
    every = register_workloads()
    names = {each.name for each in every}
    assert len(names) == len(every)
    for stream, windows in WINDOWS.items():
        for pattern in ("seq3", "seq6", "seq9", "seq12", "k3", "k6", "k9", "k12", "kn4", "kn8", "kn12", "kn16"):
            assert {f"{stream} {pattern} {w}" for w in (windows[0], 10 * windows[0], windows[-1])} <= names
    assert {f"stocks q{n} 1000" for n in range(1, 6)} <= names
    assert [each.stream for each in chosen_registers("stocks k3 500,taxis seq3 100")] == ["stocks", "taxis"]
    assert all(cerite.query(each.text).plan().has_registers for each in every if each.window == WINDOWS[each.stream][0])


def test_a_quick_run_of_registers_gives_every_column(tmp_path: Path) -> None:
    out = tmp_path / "registers.json"
    arguments = ["registers", "--quick", "--only", "stocks k3 500,stocks k3 30000", "--out", str(out)]
    assert main(arguments) == 0
    result = json.loads(out.read_text(encoding="utf-8"))
    short, wide = result["workloads"]
    columns = {"matches", "occurrences", "entries", "update_rate", "count_rate", "arrow_cpu_rate", "update_mb"}
    assert columns <= short.keys()
    assert int(wide["matches"]) > int(short["matches"]) >= short["occurrences"] > 0
    assert wide["entries"] >= short["entries"] > 0
    assert len(register_outcomes(result["workloads"])) == 2
    assert "| k3 | 30,000 |" in reported(tmp_path)
    assert ET.parse(tmp_path / "charts" / "registers-stocks-entries.svg").getroot().tag.endswith("svg")


def test_register_targets_are_judged() -> None:
    def row(pattern: str, window: int, seconds: float) -> dict[str, object]:
        return {
            "name": f"stocks {pattern} {window}", "family": "k", "pattern": pattern, "count_rate": 1e6 / seconds,
            "count_cpu_rate": 1e6 / seconds, "arrow_rate": 1e6 / seconds, "arrow_cpu_rate": 4e6, "events": 1_000_000,
        }  # fmt: skip

    rows = [row("k3", 500, 0.4), row("k3", 30_000, 4.0), row("k6", 500, 0.1), row("k6", 30_000, 2.0)]
    assert [each.met for each in register_outcomes(rows)] == [True, False, True]


def test_aggregates_are_measured_beside_the_pattern_without() -> None:
    table = aggregates.stream(300)
    figures = {name: aggregates.measured(condition, table, 1) for name, condition in aggregates.CONDITIONS.items()}
    assert all(find > 0 and count > 0 for find, count, _ in figures.values())
    assert 0 < figures["COUNT of the whole"][2] < figures["running COUNT"][2] <= figures["none"][2]


def test_absences_are_measured_beside_the_pattern_without() -> None:
    table = absences.stream(400, 20)
    figures = {name: absences.measured(name, 50, table, 1) for name in absences.PATTERNS}
    assert all(cost > 0 and matches > 0 for cost, matches in figures.values())


@pytest.mark.parametrize("shape", groups.SHAPES)
def test_groups_are_measured_beside_one_by_one(shape: str) -> None:
    grouped, single = groups.both(groups.text(shape, 50), groups.stream(400), Columns("type"), 1, single=True)
    assert grouped.matches > 0
    assert grouped.updating > 0
    said = groups.line(groups.row(shape, "A ; B", "50 events", 400, grouped, single))
    assert re.search(r"counting .* µs per event \(one by one .*\), updating .* ns per match \(one by one .* bits", said)


def facts(suite: str, rows: list[dict[str, object]]) -> dict[str, object]:
    """A result without a run."""
    head = {"title": "A run", "machine": {"date": "2026-01-02"}, "commit": "abc1234", "code": "d1g35t", "repeats": 3}
    return {"suite": suite, **head, "rows": rows}


def test_groups_are_a_table_and_a_plot() -> None:
    in_groups, one_by_one = groups.Figures(5, 0.4, 0.5, 30.0), groups.Figures(5, 1.2, 2.5, 31.0)
    rows = [
        groups.row(f"A ; {shape} ; C", f"A ; {shape}", f"{window:,} events", 20_000, in_groups, single)
        | {"shape": shape, "window": window}
        for shape in groups.SHAPES for window, single in ((100, one_by_one), (10_000, None))
    ]  # fmt: skip
    homes = groups.row("k3", "k3", "300 s of smart homes", 9, groups.Figures(2**600, 0.9, 1.0, 40.0), one_by_one)
    results = {"groups": facts("groups", [*rows, homes])}
    text = page(results)
    assert "| `A ; B+` | 10,000 events | 20,000 | 0.40 |  | 0.50 |  | 30 | 3 |" in text
    assert "| `k3` | 300 s of smart homes | 9 | 0.90 | 1.20 | 1.00 | 2.50 | 40 | 601 |" in text
    assert "](charts/groups-window.svg)" in text
    plot = plots(results)["groups-window"]
    assert plot.over == [100, 10_000]
    assert plot.series["B+, counting one by one"] == [1.2, None]
    assert plots(results)["groups-updating"].series["B+, updating one by one"] == [2.5, None]


def test_threads_are_a_table_with_their_target() -> None:
    table = stock_stream(3_000).table
    text = chosen("S3")[0].text
    rows = list(threads.rows("S3", text, table.num_rows, [threads.times(text, table, 1)]))
    assert rows[0]["threads"] == 1
    assert rows[0]["count_times"] == rows[0]["find_times"] == 1.0
    assert rows[0]["count_rate"] > 0
    assert threads.line(rows[0]).startswith("| S3 | 1 | ")
    two = {**rows[0], "threads": 2, "count_rate": 4e6, "count_times": 1.85, "find_rate": None, "find_times": None}
    text = page({"threads": facts("threads", [rows[0], two])})
    assert "| S3 counted by two threads at 1.8 times one | 1.85 times | yes |" in text
    assert "| S3 | 2 | 3,000 | 4.0 | 1.85 |" in text
    assert threads.line(two) == "| S3 | 2 | 4.0 | 1.85 | - | - |"


def test_spark_is_shown_as_times_its_floor() -> None:
    processor = {"processor": "Q3", "events": 10_000_000, "floor": [0.5, 0.0, 0.0], "tasks": [0.3, 0.4, 0.1]}
    query = {
        "query": "S3", "master": "local[2]", "events": 10_000_000, "matches": 12345, "floor": 0.5, "count": 0.4,
        "unordered_floor": 0.5, "unordered_count": 0.9, "shuffled_count": 2.0,
    }  # fmt: skip
    text = page({"spark": facts("spark", [processor, query])})
    assert "| Q3 in random order at most 2 times the floor | 1.60 times | yes |" in text
    assert "| Q3 (CONSUME BY ANY: one task) | 10 M | 0.50 | 1.6 | 0.30 + 0.40 + 0.10 |" in text
    assert "| S3 | 10 M | local[2] | 0.50 | 0.40 (0.8×) | 25.0 |" in text
    assert "| S3 | 10 M | local[2] | 0.50 | 0.90 (1.8×) | 2.00 (4.0×) | 11.1 |" in text
    assert "number of keys" not in text  # not measured


def test_what_is_published_is_kept_and_rendered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("RESULTS", "CHARTS"):
        monkeypatch.setattr(publish, name, tmp_path / name)
    monkeypatch.setattr(publish, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(publish, "FRESH", tmp_path / "fresh.md")
    monkeypatch.setattr(publish, "read_results", lambda: read_results(tmp_path / "RESULTS"))
    (tmp_path / "CHARTS").mkdir()
    (tmp_path / "CHARTS" / "gone.svg").touch()
    figures = groups.Figures(5, 0.4, 0.5, 30.0)
    row = groups.row("A ; B ; C", "A ; B", "100 events", 9, figures, None) | {"shape": "B", "window": 100}
    publish.publish(publish.result("groups", "Now", 1, [row]))
    charts = {path.name for path in (tmp_path / "CHARTS").iterdir()}
    assert charts == {"groups-updating.svg", "groups-window.svg"}
    assert "### Now" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_the_charts_of_the_page_are_drawn_of_the_committed_results() -> None:
    drawings = plots(read_results())
    assert {path.stem for path in CHARTS.glob("*.svg")} == set(drawings), "run `python -m bench report`"
    for name, plot in drawings.items():
        text = (CHARTS / f"{name}.svg").read_text(encoding="utf-8")
        assert f"<dc:source>{plot.digest}</dc:source>" in text, f"{name}: run `python -m bench report`"


def test_measures_are_timed(capsys: pytest.CaptureFixture[str]) -> None:
    assert measures.main(["--events", "20000", "--repeats", "1"]) in (0, 1)
    assert re.search(r"S3 on 20,000 events: [1-9][0-9,]* matches", capsys.readouterr().out)
    row = {"name": "S3", "events": 9_000, "matches": 4_000_000, "finding_s": 0.1, "whole_s": 0.5, "rate": 10_000_000}
    text = page({"measures": facts("measures", [row])})
    assert "| S3 measured at 10 million rows/s | 10.0 million | yes |" in text
    assert "| S3 | 9,000 | 4,000,000 | 0.10 | 0.50 | 8.0 | 10.0 |" in text


@pytest.mark.parametrize("name", ["repeats", "nested"])
def test_the_smallest_size_of_a_cliff_is_counted(name: str) -> None:
    case = next(case for case in cliffs.CASES if case.name == name)
    line, _ = cliffs.measured(case, case.sizes[0])
    assert re.match(r"[0-9,]+ states, [0-9,]+ transitions: plan .* s, count .* s", line)


def test_a_cliff_that_is_refused_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CERITE_MEMORY", "1 MiB")
    line, _ = cliffs.measured(cliffs.CASES[0], 20)
    assert line.startswith("refused: counting with")


def test_a_quick_live_run_measures_every_size_of_push_and_order(tmp_path: Path) -> None:
    target = tmp_path / "live.json"
    assert main(["live", "--quick", "--events", "2000", "--out", str(target)]) == 0
    rows = json.loads(target.read_text(encoding="utf-8"))["workloads"]
    assert len(rows) == 12
    figures = {(row["name"], row["watermark"]): row["matches"] for row in rows if row["push"] == 100}
    assert {(row["name"], row["watermark"]): row["matches"] for row in rows if row["push"] == 10_000} == figures
    assert sum(figures.values()) > 0


def test_a_process_is_listened_to() -> None:
    code = "import time; print(1, flush=True); time.sleep(0.5); print(2)"
    waited = first.watched([sys.executable, "-c", code])
    assert waited.seconds >= waited.silence >= 0.4
    with pytest.raises(SystemExit, match="failed:\nno such thing"):
        first.watched([sys.executable, "-c", "import sys; sys.exit('no such thing')"])


def test_every_way_to_the_first_match_ends_with_one(capfd: pytest.CaptureFixture[str]) -> None:
    exec(first.PYTHON, {})
    assert capfd.readouterr().out.startswith("[159,244] ")
    assert set(first.WAYS) == {"demo", "python", "cli", "spark", "tutorial"}


def test_what_a_newcomer_sees_is_kept_without_names_and_put_into_the_pages() -> None:
    said = (
        (1.0, "Collecting numpy"),
        (9.0, "Installing collected packages: numpy"),
        (12.5, "Successfully installed numpy"),
        (14.0, f"\x1b[1mkernels\x1b[0m in /venv/kernels and {first.ROOT}/docs"),
        (20.0, "[Stage 0:>   ]\r[Stage 0:==> ]\r3 matches"),
    )
    kept = first.row("demo", None, first.Waited(20.5, 3.5, said), first.Waited(8.0, 2.0), {"/venv": ".venv"})
    assert (kept["install_s"], kept["first_s"], kept["after_download_s"]) == (12.5, 8.0, 11.5)
    assert [line for _, line in kept["transcript"]] == [
        "Installing collected packages: numpy",
        "Successfully installed numpy",
        "kernels in .venv/kernels and ./docs",
        "3 matches",
    ]
    facts = {"title": "First", "machine": {"cores": "2"}, "repeats": None, "commit": "abc", "code": "def"}
    results = {"first": {"suite": "first", "rows": [kept], **facts}}
    assert "| the README's main command | 12 s | 8 s | 8.0 s | 3.5 s |" in page(results)
    assert "took 12 s after pip's downloads" in page(results)
    assert "*Import*" not in page(results)  # not measured
    kept["import_s"] = first.importing(sys.executable)
    assert f"| 8.0 s | {kept['import_s']:.2f} s | 3.5 s |" in page(results)
    assert f" {kept['import_s']:.2f} s " in first.table([kept])
    assert "$ ./dev demo\n   9.0  Installing collected packages: numpy\n" in fresh(results)


def test_the_tutorial_is_copied_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(first.ROOT)
    source = first.TUTORIAL.replace("docs/tutorial.md", "docs/testing.md")  # a short page
    waited = first.watched([sys.executable, "-c", source])
    assert any(line.startswith(">>> ") for _, line in waited.said)
