"""docs/benchmarks.md from results: the prose of bench/page.md and the tables of every file in bench/results.

A figure is in a results file, or it is not on the page. Each file says its machine, date and commit, and so does the
page above its tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench import spark_report
from bench.plots import GROUP_TIMES, PEERS, pictures
from bench.tables import big, million, table, whole
from bench.targets import Outcome, measure_outcomes, outcomes, register_outcomes, spark_outcomes, thread_outcomes

Row = dict[str, Any]
RESULTS = Path(__file__).parent / "results"
TEMPLATE = Path(__file__).parent / "page.md"
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
FRESH = PAGE.with_name("fresh.md")
GROUPS = {
    "core": "Stock market: sequences with output and without",
    "windows": "Stock market: S3' with wider windows",
    "operators": "Stock market: other operators",
    "homes": "Smart homes: sequences with output and without",
    "taxis": "Taxi trips: sequences with output and without",
    "strings": "Stock market: strings that are not dictionary-encoded",
    "enumeration": "Enumeration into Arrow",
}
FAMILIES = {"seq": "sequences", "k": "Kleene", "kn": "nested Kleene", "q": "other operators"}
STREAMS = {"stocks": ("Stock market", "ms"), "homes": ("Smart homes", "s"), "taxis": ("Taxi trips", "s")}
RATES = ("update", "count", "arrow", "conditions", "polars", "numpy")


def read_results(folder: Path = RESULTS) -> dict[str, Row]:
    """Every results file, by name."""
    paths = sorted(folder.glob("*.json"), key=lambda path: path.stem)
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def page(results: Mapping[str, Row]) -> str:
    """The page: the template, with the results of a suite where it says so."""
    text = TEMPLATE.read_text(encoding="utf-8")
    suites = {
        "papers": _papers, "registers": _registers, "groups": _groups, "threads": _threads, "peers": _peers,
        "live": _live, "measures": _measures, "spark": _spark, "streaming": _streaming, "first": _first,
    }  # fmt: skip
    for suite, render in suites.items():
        mine = {name: result for name, result in results.items() if result["suite"] == suite}
        parts = [part for name, result in mine.items() for part in (*render(result), *pictures(name, result))]
        text = text.replace(f"<!-- results: {suite} -->", "\n\n".join(parts) or "No results yet.")
    return text


def fresh(results: Mapping[str, Row]) -> str:
    """docs/fresh.md: what a newcomer sees, second by second."""
    parts = ["# A fresh machine, second by second", "<!-- Rendered by `python -m bench report` from bench/results. -->"]
    for result in (result for result in results.values() if result["suite"] == "first"):
        _, machine = _head(result)
        parts += [
            "What a newcomer types and sees, in a clone of the project, with nothing installed and no kernel compiled. "
            "Each line begins with the second at which it appeared. What pip says about single packages is left out. "
            "The times are summarised in [benchmarks.md](benchmarks.md#the-first-match).",
            machine,
        ]
        for row in result["rows"]:
            lines = "\n".join(f"{at:6.1f}  {line}".rstrip() for at, line in row["transcript"])
            parts += [f"## {row['title'][0].upper()}{row['title'][1:]}", f"```\n$ {row['typed']}\n{lines}\n```"]
    return "\n\n".join(parts) + "\n"


def _first(result: Row) -> list[str]:
    """How long a newcomer waits."""
    heads = (
        "Way", "Install", "First run", "Second run", "Import", "Longest silence while installing",
        "Before the first match",
    )  # fmt: skip
    rows = (
        (
            row["title"], f"{row['install_s']:.0f} s", f"{row['first_s']:.0f} s", f"{row['again_s']:.1f} s",
            f"{row['import_s']:.2f} s" if "import_s" in row else "",
            "" if row["install_silence_s"] is None else f"{row['install_silence_s']:.0f} s",
            f"{row['silence_s']:.1f} s",
        )
        for row in result["rows"]
    )  # fmt: skip
    demo = [
        f"The README's main command, `{row['typed']}`, took {row['after_download_s']:.0f} s after pip's downloads."
        for row in result["rows"] if row["after_download_s"] is not None
    ]  # fmt: skip
    imported = any("import_s" in row for row in result["rows"])
    about = ["*Import* is a process that imports Cerite and ends, the least of five."] if imported else []
    return [*_head(result), table(heads, rows), *about, *demo]


def _papers(result: Row) -> list[str]:
    """All tables of a run of the CORE paper's queries."""
    rows, growth = result["workloads"], result["growth"]
    parts = [*_head(result), *_targets(outcomes(rows, growth))]
    for group, title in GROUPS.items():
        mine = [row for row in rows if row["group"] == group]
        if mine:
            render = _enumeration_table if group == "enumeration" else _rate_table
            parts += [f"#### {title}", _origin(mine), render(mine)]
    if growth:
        parts += ["#### Growth with the stream: S3 on batches that are dropped", _growth_table(growth)]
    return parts


def _registers(result: Row) -> list[str]:
    """All tables of a run of the SRT paper's patterns."""
    parts = [*_head(result), *_targets(register_outcomes(result["workloads"]))]
    for stream, (where, unit) in STREAMS.items():
        for family, title in FAMILIES.items():
            mine = [row for row in result["workloads"] if (row["stream"], row["family"]) == (stream, family)]
            if mine:
                parts += [f"#### {where}: {title}", _origin(mine), _register_table(mine, unit)]
    return parts


def _live(result: Row) -> list[str]:
    """The pushes of a stream, against their goals."""
    heads = ("Query", "Events per push", "Arrival", "Events", "Matches", "M events/s", "ms per push", "Goal, M/s")
    cells = (
        (
            row["name"], whole(row["push"]), "out of order" if row["watermark"] else "in order", whole(row["events"]),
            whole(row["matches"]), million(row["rate"]), f"{row['push_ms']:.2f}", f"{row['goal'] / 1e6:g}",
            "yes" if row["rate"] >= row["goal"] else "no",
        )
        for row in result["workloads"]
    )  # fmt: skip
    return [*_head(result), table((*heads, "Met"), cells)]


def _measures(result: Row) -> list[str]:
    """Measures of matches, with the time to find them and without."""
    heads = ("Query", "Events", "Rows", "Finding, s", "Finding and measuring, s", "M rows/s", "Measuring alone, M/s")
    cells = (
        (
            row["name"], whole(row["events"]), whole(row["matches"]),
            f"{row['finding_s']:.2f}", f"{row['whole_s']:.2f}",
            million(row["matches"] / row["whole_s"]), million(row["rate"]),
        )
        for row in result["rows"]
    )  # fmt: skip
    return [*_head(result), *_targets(measure_outcomes(result["rows"])), table(heads, cells)]


def _spark(result: Row) -> list[str]:
    """Data at rest on Spark, as times its floor."""
    return [*_head(result), *_targets(spark_outcomes(result["rows"])), *spark_report.tables(result["rows"])]


def _groups(result: Row) -> list[str]:
    """Registers moved in groups and one by one, by window."""
    times = {key: shown for plot in GROUP_TIMES.values() for key, shown in plot.items()}
    heads = ("Pattern", "Window", "Events", *(f"{shown.capitalize()}, µs" for shown in times.values()))
    cells = (
        (
            f"`{row['pattern']}`", row["within"], whole(row["events"]),
            *(f"{row[name]:.2f}" if row.get(name) else "" for name in times),
            whole(None if row.get("enumerating") is None else round(row["enumerating"])), whole(row["bits"]),
        )
        for row in result["rows"]
    )  # fmt: skip
    return [*_head(result), table((*heads, "Enumerating in groups, ns per match", "Bits of the count"), cells)]


def _threads(result: Row) -> list[str]:
    """The same work by more threads."""
    heads = ("Query", "Threads", "Events", "Counting, M events/s", "Speed-up", "Finding, M events/s")
    cells = (
        (
            row["name"], whole(row["threads"]), whole(row["events"]), million(row["count_rate"]),
            f"{row['count_times']:.2f}", million(row["find_rate"]),
            "" if row["find_times"] is None else f"{row['find_times']:.2f}",
        )
        for row in result["rows"]
    )  # fmt: skip
    return [*_head(result), *_targets(thread_outcomes(result["rows"])), table((*heads, "Speed-up"), cells)]


def _peers(result: Row) -> list[str]:
    """Other engines beside us: rates, then how many times as fast we are."""
    rows = result["workloads"]
    queries = "\n".join(f"- {row['name']}: `{row['query']}`" for row in rows)
    rates = ("Case", "Events", "Matches", "Cerite, k events/s", *(f"{shown}, k events/s" for shown in PEERS.values()))
    times = ("Case", *(f"Times {shown}" for shown in PEERS.values()))
    return [
        *_head(result), queries, table((*rates, "Note"), map(_peer_rates, rows)), table(times, map(_peer_times, rows)),
    ]  # fmt: skip


def _peer_rates(row: Row) -> tuple[str, ...]:
    rates = [f"{row[name] / 1e3:,.0f}" if name in row else "" for name in ("cerite", *PEERS)]
    notes = [row[name] for name in ("skipped", "error", *(f"{peer}_note" for peer in PEERS)) if name in row]
    return (row["name"], whole(row["events"]), whole(row["matches"]), *rates, "; ".join(notes))


def _peer_times(row: Row) -> tuple[str, ...]:
    times = [row["cerite"] / row[name] if name in row else None for name in PEERS]
    return (row["name"], *("" if each is None else f"{each:,.{int(each < 10)}f}" for each in times))


def _streaming(result: Row) -> list[str]:
    """Live streams on Spark: throughput, latency and a day."""
    titles = {"throughput": "Throughput", "latency": "Latency", "day": "A day"}
    tables = {"throughput": _streaming_rates, "latency": _streaming_delays, "day": _streaming_day}
    return [part for name, each in result["parts"].items()
            for part in (*_head({"title": titles[name], **each}), tables[name](each["rows"]))]  # fmt: skip


def _streaming_rates(rows: list[Row]) -> str:
    heads = ("Keys", "Route", "Events", "Matches", "M events/s, processor", "M events/s, elapsed", "Times stateless")
    cells = (
        (
            whole(row["keys"]), row["route"], whole(row["events"]), whole(row["matches"] or None),
            f"{row['per_processor_second'] / 1e6:.2f}", f"{row['per_second'] / 1e6:.2f}",
            f"{row['against_stateless']:.2f}", f"{row['state_bytes'] / 1e6:.2f}" if row["state_bytes"] else "",
            f"{row['batch_p50_s']:.1f}",
        )
        for row in rows
    )  # fmt: skip
    return table((*heads, "MB of state", "s per micro-batch"), cells)


def _streaming_delays(rows: list[Row]) -> str:
    heads = ("Keys", "Route", "Events per second", "Results", "p50, s", "p99, s")
    return table(heads, (
        (whole(row["keys"]), row["route"], whole(row["rate"]), whole(row["results"]), f"{row['latency_p50_s']:.2f}",
         f"{row['latency_p99_s']:.2f}")
        for row in rows
    ))  # fmt: skip


def _streaming_day(rows: list[Row]) -> str:
    heads = ("Events", "Micro-batches", "M events/s, processor", "Minutes", "MB of state by quarter")
    return table(heads, (
        (whole(row["events"]), whole(row["micro_batches"]), f"{row['per_processor_second'] / 1e6:.2f}",
         f"{row['elapsed_s'] / 60:.1f}", ", ".join(f"{size / 1e6:.3f}" for size in row["quarters"]))
        for row in rows
    ))  # fmt: skip


def _head(result: Row) -> list[str]:
    facts = {**result["machine"], "best of": result["repeats"], "commit": result["commit"], "sources": result["code"]}
    text = "; ".join(f"{name} {value}" for name, value in facts.items() if value is not None)
    return [f"### {result['title']}", text[0].upper() + text[1:] + ".", *([result["note"]] if "note" in result else [])]


def _targets(judged: list[Outcome]) -> list[str]:
    rows = [(each.target, each.measured, "yes" if each.met else "no") for each in judged]
    return [table(("Target", "Measured", "Met"), rows)] if rows else []


def _rate_table(rows: list[Row]) -> str:
    heads = ("Query", "Matches", "Occurrences", "Update", "Count", "Arrow", "Conditions", "Polars floor", "NumPy floor")
    return table((*heads, "Update MB", "Count MB"), (_rate_cells(row) for row in rows))


def _rate_cells(row: Row) -> tuple[str, ...]:
    if "error" in row:
        return (row["name"], row["error"], *[""] * 9)
    rates = [million(row.get(f"{name}_rate")) for name in RATES]
    if "arrow_rate" in row:
        rates[2] = rates[2] or "skipped"
    return (row["name"], big(row.get("matches")), whole(row.get("occurrences")), *rates, *_memory(row))


def _register_table(rows: list[Row], unit: str) -> str:
    heads = ("Pattern", f"Window, {unit}", "Matches", "Occurrences", "Entries", "Update", "Count", "Arrow", "Update MB")
    return table((*heads, "Count MB"), (_register_cells(row) for row in rows))


def _register_cells(row: Row) -> tuple[str, ...]:
    head = (row["pattern"], f"{row['window']:,}")
    if "error" in row:
        return (*head, row["error"], *[""] * 7)
    rates = (_both(row, "update"), _both(row, "count"), _both(row, "arrow") or "skipped")
    return (*head, big(row["matches"]), whole(row["occurrences"]), whole(row["entries"]), *rates, *_memory(row))


def _both(row: Row, name: str) -> str:
    """Elapsed / processor time."""
    if f"{name}_rate" not in row:
        return ""
    return f"{million(row[f'{name}_rate'])} / {million(row[f'{name}_cpu_rate'])}"


def _memory(row: Row) -> tuple[str, str]:
    update, count = row.get("update_mb"), row.get("count_mb")
    return ("" if update is None else f"{update:.0f}", "" if count is None else f"{count:.0f}")


def _enumeration_table(rows: list[Row]) -> str:
    heads = ("Query", "Events", "Matches", "Million matches/s", "of which enumerating", "to_arrow(), s", "Note")
    return table(heads, (_enumeration_cells(row) for row in rows))


def _enumeration_cells(row: Row) -> tuple[str, ...]:
    if "error" in row:
        return (row["name"], row["error"], *[""] * 5)
    head = (row["name"], whole(row["events"]), big(row["matches"]))
    if row["match_rate"] is None:
        return (*head, "skipped", "", "", row["arrow_note"])
    seconds = row.get("arrow_s")
    memory = "" if seconds is None or row["arrow_note"] else f"{seconds:.2f}"
    return (*head, million(row["match_rate"]), million(row.get("enumerated_rate")), memory, row.get("arrow_note", ""))


def _growth_table(rows: list[Row]) -> str:
    heads = ("Events", "Update s", "Count s", "Update M/s", "Count M/s", "Update MB", "Count MB")
    cells: Callable[[Row], tuple[str, ...]] = lambda row: (  # noqa: E731
        whole(row["events"]), f"{row['update_s']:.3f}", f"{row['count_s']:.3f}", million(row["update_rate"]),
        million(row["count_rate"]), *_memory(row),
    )  # fmt: skip
    bad = ((whole(row["events"]), row["error"], *[""] * 5) for row in rows if "error" in row)
    return table(heads, [*(cells(row) for row in rows if "error" not in row), *bad])


def _origin(rows: list[Row]) -> str:
    origins = dict.fromkeys(f"{row['events']:,} events ({row['origin']})" for row in rows if "error" not in row)
    return "; ".join(origins) + "."


def draw_charts(results: Mapping[str, Row], folder: Path) -> list[Path]:
    """Charts of the papers' queries and patterns; gives the files drawn."""
    from bench import charts  # Matplotlib takes a second to import and only this needs it

    drawn: list[Path] = []
    for name, result in results.items():
        if result["suite"] not in ("papers", "registers"):
            continue
        rows = [row for row in result["workloads"] if "error" not in row]
        if result["suite"] == "registers":
            drawn += _register_charts(rows, folder, name)
            continue
        for group in GROUPS:
            mine = [row for row in rows if row["group"] == group and group != "enumeration"]
            columns = ("update", "count", "arrow", "polars", "numpy")
            series = {each: [row.get(f"{each}_rate") for row in mine] for each in columns}
            if mine:
                names = [row["name"] for row in mine]
                drawn.append(charts.bars(folder / f"{name}-{group}.svg", GROUPS[group], "events/s", names, series))
        growth = [row for row in result["growth"] if "error" not in row]
        for suffix, title, unit in (("s", "time", "s"), ("mb", "memory", "MB")):
            series = {each: [row[f"{each}_{suffix}"] for row in growth] for each in ("update", "count")}
            lengths = [row["events"] for row in growth]
            if growth:
                path, title = folder / f"{name}-growth-{title}.svg", f"S3: {title} against stream length"
                drawn.append(charts.lines(path, title, unit, lengths, series, "events"))
    return drawn


def _register_charts(rows: list[Row], folder: Path, name: str) -> list[Path]:
    """Rates and entries of the shortest patterns against the window."""
    from bench import charts

    drawn: list[Path] = []
    for stream, (where, unit) in STREAMS.items():
        by_pattern = {
            pattern: {row["window"]: row for row in rows if (row["stream"], row["pattern"]) == (stream, pattern)}
            for pattern in ("seq3", "k3", "kn4")
        }
        by_pattern = {pattern: by_window for pattern, by_window in by_pattern.items() if len(by_window) > 1}
        windows = sorted(set.intersection(*map(set, by_pattern.values()))) if by_pattern else []
        if len(windows) < 2:
            continue
        for column, what, title in (("count_rate", "events/s", "counting"), ("entries", "entries", "entries alive")):
            series = {
                pattern: [by_window[each][column] for each in windows] for pattern, by_window in by_pattern.items()
            }
            path = folder / f"{name}-{stream}-{column.split('_')[0]}.svg"
            title = f"{where}: {title} against the window"
            drawn.append(charts.lines(path, title, what, windows, series, f"window, {unit}"))
    return drawn
