"""Cerite, Esper and FlinkCEP on one stream, one after the other, each in one thread, all events in memory before.

The peers are fetched and the drivers of src compiled by Maven (pom.xml), into build/bench/peers. Where Maven or a Java
of 17 or later is missing, or packages cannot be had, the peers are left out and the row says why. Rates are events per
second of processor time, which for Java contains its compiler and its collector; the first run warms up and does not
count. A peer whose matches, or their measures, are others than ours is an error.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

import cerite
from bench.peers.cases import CASES, Case

Row = dict[str, Any]
HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "bench" / "peers"
OPENED = ("java.base/java.util", "java.base/java.lang", "java.base/java.time")  # what Flink's serializers look into
JAVA = ("java", "-Xmx4g", "-XX:+UseSerialGC", *(f"--add-opens={each}=ALL-UNNAMED" for each in OPENED))
SECONDS = 600  # that a peer may take for one case


def rows(events: int, repeats: int, only: str | None = None) -> Iterator[Row]:
    """The cases, all or those named, ours and the peers' rates beside each other."""
    reason = built()
    for case in CASES:
        if only is not None and case.name not in only.split(","):
            continue
        table = case.stream(events)
        seconds, result = ours(case, table, repeats)
        row: Row = {
            "name": case.name, "events": events, "query": case.query, "matches": result[0],
            "cerite": round(events / seconds),
        }  # fmt: skip
        if reason is not None:
            yield row | {"skipped": reason}
            continue
        stream = BUILD / f"{case.name}.csv"
        csv.write_csv(table.set_column(1, "type", table["type"].cast(pa.string())), stream, NO_HEADER)
        for peer, job in (("esper", ("EsperPeer", case.esper)), ("flink", ("FlinkPeer", case.name, case.window))):
            row |= theirs(peer, [str(each) for each in job], stream, events, repeats, result)
        yield row


NO_HEADER = csv.WriteOptions(include_header=False, quoting_style="none")


def ours(case: Case, table: pa.Table, repeats: int) -> tuple[float, tuple[int, int]]:
    """Seconds of processor time, the number of matches, and the sum of their measures."""
    query, best, result = cerite.query(case.query), float("inf"), (0, 0)
    for _ in range(1 + repeats):
        begin = time.process_time()
        measured = pa.concat_tables(query.run(table, time="at").tables())
        best = min(best, time.process_time() - begin)
        sums = (pc.sum(measured[name]).as_py() or 0 for name in ("low", "n") if name in measured.column_names)
        result = measured.num_rows, sum(sums)
    return best, result


def theirs(peer: str, job: list[str], stream: Path, events: int, repeats: int, result: tuple[int, int]) -> Row:
    """What one peer gives: its rate, or what went wrong."""
    driver, *arguments = job
    classpath = f"{BUILD / 'classes'}:{(BUILD / 'classpath').read_text('utf-8').strip()}"
    command = [*JAVA, "-cp", classpath, driver, str(stream), str(1 + repeats), *arguments]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS).stdout
    except subprocess.TimeoutExpired:
        return {f"{peer}_note": f"more than {SECONDS} s"}
    except subprocess.CalledProcessError as error:
        return {"error": f"{peer}: {error.stderr.strip()[-500:]}"}
    runs = [tuple(map(int, line.split()[1:])) for line in said.splitlines() if line.startswith("run ")][1:]
    if any(run[:2] != result for run in runs):
        return {"error": f"{peer} finds {runs[0][:2]} (matches, sum of measures), we find {result}"}
    return {peer: round(events / min(run[2] for run in runs) * 1e9)}


def built() -> str | None:
    """Fetch the peers and compile their drivers; None, or why that cannot be done."""
    for tool in ("mvn", "java", "javac"):
        if shutil.which(tool) is None:
            return f"no `{tool}` here"
    goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={BUILD / 'classpath'}"]
    command = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), f"-Dpeers.build={BUILD}", *goals]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "packages cannot be fetched in time"
    errors = [line for line in run.stdout.splitlines() if line.startswith("[ERROR]")]
    return None if run.returncode == 0 else " ".join(errors[:1]) or "Maven fails"


def versions() -> dict[str, str]:
    """Of the peers, as pom.xml names them."""
    return dict(re.findall(r"<(\w+)\.version>([^<]+)<", (HERE / "pom.xml").read_text("utf-8")))


def line(row: Row) -> str:
    """A measurement as it is printed."""
    names = {"cerite": "Cerite", "esper": "Esper", "flink": "FlinkCEP"}
    rates = [f"{shown} {row[name] / 1e3:,.0f} k/s" for name, shown in names.items() if name in row]
    notes = [row[name] for name in ("skipped", "esper_note", "flink_note") if name in row]
    return f"{row['name']}: {row['matches']:,} matches, {', '.join(rates + notes)}"
