"""The workloads: the queries of the CORE paper's appendices D to G, each with the stream it runs on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.corpus.loader import paper_queries

LENGTHS = (3, 6, 9, 12, 24)
WIDTHS = (1, 2, 3, 4, 10, 100)
_WITHIN = re.compile(r"WITHIN (\d+)")


@dataclass(frozen=True)
class Workload:
    """One query on one stream; `group` is what `--only` names, `most` caps the events, `semantics` is the run's."""

    name: str
    group: str
    stream: str
    text: str
    most: int | None = None
    semantics: str = "valuations"
    plain_strings: bool = False


def workloads() -> list[Workload]:
    """All of them, in the order of the tables."""
    papers = paper_queries()
    every = [
        Workload(f"{letter}{n}{prime}", group, stream, papers[f"{page}/{letter}{n}{prime}"])
        for group, stream, page, letter in _SEQUENCES
        for prime in ("", "'")
        for n in LENGTHS
    ]
    every += [Workload(f"S3' at {_width(k)}", "windows", "stocks", wider(papers["D/S3'"], k)) for k in WIDTHS]
    every += [Workload(f"Q{n}", "operators", "stocks", papers[f"G/Q{n}"]) for n in range(1, 8)]
    every.append(Workload("S3 plain strings", "strings", "stocks", papers["D/S3"], plain_strings=True))
    return every + _many_matches(papers)


_SEQUENCES = (("core", "stocks", "D", "S"), ("homes", "homes", "E", "H"), ("taxis", "taxis", "F", "T"))


def _many_matches(papers: dict[str, str]) -> list[Workload]:
    """Queries with far more matches than events; fewer events keep the tables in memory."""
    return [
        Workload(
            f"{name} at {_width(k)}, {short}", "enumeration", "stocks", wider(papers[f"D/{name}"], k), most, semantics
        )
        for name, k, most in (("S3", 10, 224_473), ("S6", 2, 100_000), ("S9", 1, 1_000_000))
        for semantics, short in (("complex-events", "positions"), ("valuations", "with variables"))
    ]


def wider(text: str, times: int) -> str:
    """The query with a window that is `times` times as wide.

    >>> wider("SELECT * FROM S WHERE A ; B WITHIN 10 [t]", 3)
    'SELECT * FROM S WHERE A ; B WITHIN 30 [t]'
    """
    return _WITHIN.sub(lambda window: f"WITHIN {int(window[1]) * times}", text)


def _width(times: int) -> str:
    return "T" if times == 1 else f"{times}T"


def chosen(only: str | None) -> list[Workload]:
    """The workloads of a group, or of names, separated by commas; all by default."""
    every = workloads()
    if only is None:
        return every
    wanted = [each.strip() for each in only.split(",")]
    return [each for each in every if each.group in wanted or each.name in wanted]
