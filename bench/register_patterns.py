"""The patterns of the SRT paper's section 5 (7 in the report): conditions across events, on three kinds of streams.

seq: triples, the third event compared with the first. k: the second of each triple repeated. kn: quadruples, the third
repeated inside the repetition of the second and third. q1 to q5: other operators, on stocks. The paper prints the stock
companies and the windows of its figures by length; what it leaves out (companies of longer patterns, thresholds, the
windows between) is filled in here, and every series of windows goes on to ten times the width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.taxis import TOURED

SEQUENCES, NESTED = (3, 6, 9, 12), (4, 8, 12, 16)
WINDOWS = {
    "stocks": (500, 1_000, 3_000, 5_000, 10_000, 30_000),
    "homes": (5, 10, 30, 50, 100, 300),
    "taxis": (100, 200, 600, 1_000, 2_000, 6_000),
}
TIMES = {"stocks": "stock_time", "homes": "plug_timestamp", "taxis": "dropoff_datetime"}


@dataclass(frozen=True)
class RegisterWorkload:
    """One pattern in one window; `family` is what a table or `--only` names."""

    family: str
    stream: str
    pattern: str
    length: int
    window: int
    where: str

    @property
    def name(self) -> str:
        """The name, which is unique in the suite."""
        return f"{self.stream} {self.pattern} {self.window}"

    @property
    def text(self) -> str:
        """The query."""
        return f"SELECT * FROM S WHERE {self.where} WITHIN {self.window} [{TIMES[self.stream]}]"


def register_workloads() -> list[RegisterWorkload]:
    """All of them, in the order of the tables."""
    workloads: list[RegisterWorkload] = []
    for stream in ("stocks", "homes", "taxis"):
        workloads += _lengths(stream, "seq", SEQUENCES)
        workloads += _lengths(stream, "k", SEQUENCES)
        workloads += _lengths(stream, "kn", NESTED)
    for name, where in _OTHERS.items():
        workloads += [RegisterWorkload("q", "stocks", name, 4, window, where) for window in (1_000, 10_000)]
    return workloads


def chosen_registers(only: str | None) -> list[RegisterWorkload]:
    """The workloads of a family, stream, pattern, or name, separated by commas; all by default.

    >>> [each.name for each in chosen_registers("stocks k3 500,taxis kn16 100")]
    ['stocks k3 500', 'taxis kn16 100']
    """
    every = register_workloads()
    if only is None:
        return every
    wanted = {each.strip() for each in only.split(",")}
    return [each for each in every if wanted & {each.family, each.stream, each.pattern, each.name}]


def _lengths(stream: str, family: str, lengths: tuple[int, ...]) -> Iterator[RegisterWorkload]:
    """The shortest pattern in all windows; longer ones in the paper's, ten times that, and the widest."""
    every = WINDOWS[stream]
    for length in lengths:
        for window in every if length == lengths[0] else (every[0], 10 * every[0], every[-1]):
            yield RegisterWorkload(family, stream, f"{family}{length}", length, window, where(stream, family, length))


def where(stream: str, family: str, length: int) -> str:
    """The pattern of a length.

    >>> for part in where("homes", "k", 3).split(" ; "):
    ...     print(part)
    LOAD[household_id = 0 AND value > 76] AS x1
    (LOAD[household_id = 2 AND value > 76])+
    LOAD[household_id = 4 AND value > x1.value]
    """
    size = 4 if family == "kn" else 3
    steps, compared = _STEPS[stream]
    parts = []
    for number in range(length // size):
        register = f"x{number + 1}"
        mine = [steps(number * 3 + k if k < 3 else number * 3 + 3) for k in range(size)]
        mine[0] = mine[0] + f" AS {register}"
        op = "<" if family == "kn" and stream == "stocks" else ">"
        mine[-1] = _with(steps(number * 3 + size - 1, False), f"{compared} {op} {register}.{compared}")
        if family == "k":
            mine[1] = f"({mine[1]})+"
        if family == "kn":
            mine[1:3] = [f"({mine[1]} ; ({mine[2]})+)+"]
        parts += mine
    return " ; ".join(parts)


def _with(step: str, condition: str) -> str:
    return f"{step[:-1]} AND {condition}]"


_TICKS = (
    "SELL INTC", "BUY RIMM", "BUY QQQ", "SELL MSFT", "BUY AMAT", "BUY QQQ", "SELL ORCL", "BUY CSCO", "BUY DELL",
    "SELL CSCO", "BUY ORCL", "BUY YHOO", "SELL AMAT",
)  # fmt: skip
_HOUSEHOLDS = (0, 2, 4, 6, 9, 10, 11, 12, 13, 14, 15, 16, 1)
_ZONES = (*TOURED, TOURED[0], TOURED[2], TOURED[1])


def _tick(number: int, local: bool = True) -> str:
    kind, company = _TICKS[number].split()
    cheap = " AND price < 500" if local and company == "RIMM" else ""
    return f"{kind}[name = '{company}'{cheap}]"


def _load(number: int, local: bool = True) -> str:
    return f"LOAD[household_id = {_HOUSEHOLDS[number]}{' AND value > 76' if local else ''}]"


def _trip(number: int, local: bool = True) -> str:
    pickup, dropoff = (_ZONES[(number + k) % len(_ZONES)] for k in (0, 1))
    return f"TRIP[pickup_loc = '{pickup}' AND dropoff_loc = '{dropoff}']"


_STEPS: dict[str, tuple[Callable[..., str], str]] = {
    "stocks": (_tick, "price"),
    "homes": (_load, "value"),
    "taxis": (_trip, "fare"),
}


def _either(company: str, *more: str) -> str:
    """BUY or SELL."""
    inside = " AND ".join((f"name = '{company}'", *more))
    return f"(BUY[{inside}] OR SELL[{inside}])"


_CHEAPER = "SELL[name = 'AMAT' AND price < x.price]"
_DEAR = "SELL[name = 'MSFT' AND price > 26.0] AS x"
_CHEAPER_DEAR = "SELL[name = 'AMAT' AND price >= 18.92 AND price < x.price]"
_OTHERS = {
    "q1": f"SELL[name = 'MSFT'] AS x ; BUY[name = 'ORCL'] ; BUY[name = 'CSCO'] ; {_CHEAPER}",
    "q2": f"{_DEAR} ; BUY[name = 'ORCL' AND price > 11.14] ; BUY[name = 'CSCO'] ; {_CHEAPER_DEAR}",
    "q3": f"SELL[name = 'MSFT'] AS x ; {_either('ORCL')} ; {_either('CSCO')} ; {_CHEAPER}",
    "q4": f"{_DEAR} ; {_either('ORCL', 'price > 11.14')} ; {_either('CSCO')} ; {_CHEAPER_DEAR}",
    "q5": f"SELL[name = 'MSFT'] AS x ; {_either('QQQ', 'volume = 4000')}+ ; {_CHEAPER}",
}
