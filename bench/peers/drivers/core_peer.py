"""CORE in C++, through its Python module `pycer`: `core_peer.py FOLDER STREAM RUNS QUERY TYPES`.

Nothing of Cerite is imported. The offline server takes events that are in memory and gives its matches as text, which
is in its time; reading the text is not. Its threads are held to one core where the system can do that.
"""

from __future__ import annotations

import csv
import importlib
import os
import re
import sys
import time
from typing import Any

_EVENT = re.compile(r"\(id: (\d+) attributes: \[\d+ \d+ (\d+) \]\)")


def declaration(types: str) -> str:
    """The stream as CORE declares it.

    >>> print(declaration("AB"))
    CREATE STREAM S {
    EVENT A { at:int, id:int, v:int },
    EVENT B { at:int, id:int, v:int }
    }
    """
    return "CREATE STREAM S {\n" + ",\n".join(f"EVENT {name} {{ at:int, id:int, v:int }}" for name in types) + "\n}"


def measures(text: str, ids: dict[str, int]) -> tuple[int, int]:
    """How many matches the server told of, and the sum of their measures: the value of the A, the number of B.

    >>> told = "[1,3], ((id: 0 attributes: [1 6 117 ]) (id: 1 attributes: [2 4 7 ]) (id: 2 attributes: [3 3 2 ]) )"
    >>> measures(f"{told}\\n\\n{told}\\n", {"A": 0, "B": 1, "C": 2})
    (2, 236)
    """
    first, repeated, total = str(ids["A"]), str(ids["B"]), 0
    lines = [line for line in text.splitlines() if line.startswith("[")]
    for line in lines:
        for name, value in _EVENT.findall(line):
            total += int(value) if name == first else 1 if name == repeated else 0
    return len(lines), total


def once(pycer: Any, rows: list[list[str]], query: str, types: str) -> tuple[int, int, int]:
    """Matches, the sum of their measures, and nanoseconds of processor time."""
    server = pycer.PyOfflineServer()
    ids = {event.name: event.id for event in server.declare_stream(declaration(types)).events_info}
    server.add_query(query)
    whole = pycer.PyIntValue
    events = [
        pycer.PyEvent(ids[name], [whole(int(at)), whole(int(key)), whole(int(value))], whole(int(at)))
        for at, name, key, value in rows
    ]
    begin = time.process_time_ns()
    server.send_events(events)
    text = server.get_output()
    end = time.process_time_ns()
    return *measures(text, ids), end - begin


def main(folder: str, stream: str, runs: str, query: str, types: str) -> None:
    """Run, and print a line for every run."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    sys.path.insert(0, folder)
    pycer = importlib.import_module("pycer")
    with open(stream, encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))
    for _ in range(int(runs)):
        print("run", *once(pycer, rows, query, types), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
