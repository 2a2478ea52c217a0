"""What must be the same where a snapshot of a live run is taken and where it is restored, part by part.

What only decides how matches are shown (LIMIT, the attributes that SELECT names) is not part of the state and may
change.

Invariant: a snapshot taken with another query, other columns or another order of events is refused with an error that
says what differs; it is never misread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cerite.core.errors import Hint, Setting, SnapshotError
from cerite.engine.bind import Program
from cerite.engine.live.sorter import Ordering
from cerite.engine.plan import Plan

Identity = dict[str, Any]
_QUERY = {
    "pattern": "pattern", "variables": "variables in SELECT", "strategy": "selection strategy", "window": "window",
    "partition": "PARTITION BY", "consume": "CONSUME BY", "suppress": "SUPPRESS", "semantics": "semantics",
}  # fmt: skip
_ORDER = {"ties": "order_by", "delay": "watermark", "deduplicate": "deduplicate"}


def identity(program: Program, ordering: Ordering) -> Identity:
    """Everything that the meaning of the state depends on, by name."""
    plan, columns = program.plan, program.columns
    return {
        "query": {
            "pattern": "; ".join((*map(str, plan.guards), *_absent(plan))), "variables": ", ".join(plan.variables),
            "strategy": plan.strategy, "window": str(plan.window), "partition": ", ".join(plan.partition),
            "consume": plan.consume, "suppress": str(plan.suppress or ""), "semantics": plan.semantics,
        },
        "schema": {column.name: str(column.type) for column in program.schema},
        "columns": {"time": columns.time or ordering.time, "type": columns.type, "position": columns.position},
        "unit": columns.unit,
        "order": {
            "ties": ", ".join(ordering.ties), "delay": "" if ordering.delay is None else str(ordering.delay),
            "deduplicate": ", ".join(ordering.deduplicate),
        },
    }  # fmt: skip


def _absent(plan: Plan) -> Iterator[str]:
    """What must be absent at the ends of the pattern, as far as the guards do not say it."""
    for each in plan.automaton.preceding:
        within = "" if each.size is None else f" WITHIN {each.size}"
        yield f"NOT before: {'; '.join(map(str, each.automaton.conditions))}{within}"
    if plan.late:
        yield "decided when the window is over"


def check_identity(taken: Identity, mine: Identity) -> None:
    """Refuse a snapshot that was taken with something else, and say what differs."""
    _check_query(taken["query"], mine["query"])
    _check_schema(taken["schema"], mine["schema"])
    for role, name in mine["columns"].items():
        if taken["columns"][role] != name:
            raise SnapshotError(
                f"the snapshot was taken with {_named(role, taken['columns'][role])}, "
                f"but this stream has {_named(role, name)}",
                hint="open the stream with the same columns: query.stream(schema, time=…, type=…, position=…)",
            )
    if taken["unit"] != mine["unit"]:
        raise SnapshotError(
            f"the snapshot was taken with times in {taken['unit']}, but this stream has {mine['unit']}",
            hint=Hint("open the stream with ", Setting("time_unit", taken["unit"])),
        )
    for part, word in _ORDER.items():
        if taken["order"][part] != mine["order"][part]:
            there, here = (each["order"][part] or "none" for each in (taken, mine))
            ticks = " ticks of the time column" if part == "delay" else ""
            raise SnapshotError(
                f"the snapshot was taken with another {word}: {there} there and {here} here{ticks}",
                hint="open the stream as it was when the snapshot was taken",
            )


def _check_query(taken: dict[str, str], mine: dict[str, str]) -> None:
    differing = [part for part in mine if taken[part] != mine[part]]
    if differing:
        part = differing[0]
        raise SnapshotError(
            f"the snapshot was taken with another query: its {_QUERY[part]} {'are' if part == 'variables' else 'is'} "
            f"{taken[part] or 'none'} there and {mine[part] or 'none'} here",
            hint="restore it with its own query; LIMIT, measures and the attributes that SELECT shows may change",
        )


def _check_schema(there: dict[str, str], here: dict[str, str]) -> None:
    if list(there.items()) == list(here.items()):
        return
    differing = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    differences = "; ".join(
        f"`{name}` is {there.get(name, 'missing')} there and {here.get(name, 'missing')} here" for name in differing[:3]
    )
    raise SnapshotError(
        f"the snapshot was taken with other columns: {differences or 'they are in another order'}",
        hint="restore it into a stream of the schema it was taken with",
    )


def _named(role: str, name: str | None) -> str:
    return f"no {role} column" if name is None else f"the {role} column `{name}`"
