"""`query.trace(events)`: what the engine holds after every event of a small run.

For each event: the nodes that it adds to the tECS, T (every deterministic state that holds partial matches, with its
union-list), and the matches that it completes (CORE, sections 4.1-4.2 and Algorithm 1). A deterministic state is a set
of automaton states; with registers, a set of configurations: automaton states with the values that are stored.

Invariant: the engine is the one that `run` uses, given one event at a time; nothing is simulated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cerite.api.batch import BatchMatches
from cerite.api.inputs import Prepared
from cerite.automaton.draw import mermaid_escaped
from cerite.core.errors import StreamError
from cerite.core.match import Match
from cerite.data.open import opened
from cerite.data.reading import Reading
from cerite.engine.registers.interpret import FLAGS, KNOWN, STATE, TALLY, VALUES
from cerite.engine.registers.leaves import Leaf, Mark, Running
from cerite.engine.registers.recogniser import RegisterRecogniser
from cerite.engine.run import Run
from cerite.engine.subset.recogniser import Recogniser
from cerite.engine.tecs.nodes import BOTTOM, KIND, LEFT, OTHER, UNION
from cerite.pattern.query import QuerySpec
from cerite.predicate.words import shown

if TYPE_CHECKING:
    from rich.tree import Tree

MOST_EVENTS = 200
_SHAPES = {"bottom": ("([", "])"), "output": ("[", "]"), "union": ("((", "))")}


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node of the tECS: `bottom` where a run starts, `output` for an event that is marked, or `union` of two."""

    number: int
    kind: str
    position: int | None = None
    variables: tuple[str, ...] = ()
    children: tuple[int, ...] = ()

    @property
    def words(self) -> str:
        """What the node says, without the nodes that it leads to."""
        if self.kind == "bottom":
            return f"⊥ a run starts at row {self.position}"
        return "∪" if self.kind == "union" else f"row {self.position} as {', '.join(self.variables)}"

    def __str__(self) -> str:
        if self.kind == "union":
            return f"n{self.number} = n{self.children[0]} ∪ n{self.children[1]}"
        return f"n{self.number} = {self.words}" + "".join(f", then n{child}" for child in self.children)


@dataclass(frozen=True, slots=True)
class TraceState:
    """A deterministic state, the partition it belongs to, and its union-list: numbers of nodes, latest start first."""

    name: str
    nodes: tuple[int, ...]
    partition: tuple[Any, ...] = ()

    def __str__(self) -> str:
        where = f" of {', '.join(map(shown, self.partition))}" if self.partition else ""
        return f"T[{self.name}]{where} = {', '.join(f'n{node}' for node in self.nodes)}"


@dataclass(frozen=True, slots=True)
class TraceStep:
    """An event, or, without a row, the end of the data; `skipped` if the event could not change anything."""

    position: int | None
    row: dict[str, Any]
    skipped: bool
    nodes: tuple[TraceNode, ...]
    states: tuple[TraceState, ...]
    matches: tuple[Match, ...]

    @property
    def title(self) -> str:
        """The event in one line."""
        if self.position is None:
            return "end of the data"
        values = ", ".join(f"{name}={shown(value)}" for name, value in self.row.items() if value is not None)
        return f"row {self.position}: {values}"

    @property
    def parts(self) -> list[tuple[str, list[str]]]:
        """What there is to say about the event, by headings."""
        if self.skipped:
            return [("skipped: it satisfies no test that could move a state", [])]
        items = [("new nodes", self.nodes), ("union-lists", self.states), ("matches", self.matches)]
        return [(name, list(map(str, each))) for name, each in items if each or name == "union-lists"]


@dataclass(frozen=True)
class Trace:
    """The steps of a run, as text, as a tree in a terminal, as HTML in a notebook."""

    engine: str
    steps: tuple[TraceStep, ...] = field(repr=False)

    def __str__(self) -> str:
        lines = [f"engine: {self.engine}"]
        for step in self.steps:
            lines.append(step.title)
            for name, items in step.parts:
                lines += [f"  {name}" + ("" if items or name.startswith("skipped") else ": none")]
                lines += [f"    {each}" for each in items]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def __rich__(self) -> Tree:
        from rich.text import Text
        from rich.tree import Tree

        tree = Tree(Text(f"engine: {self.engine}", style="bold"))
        for step in self.steps:
            branch = tree.add(Text(step.title, style="dim" if step.skipped else "bold"))
            for name, items in step.parts:
                part = branch.add(Text(name))
                for each in items:
                    part.add(Text(each))
        return tree

    def mermaid(self) -> str:
        """The tECS after the last event, as a Mermaid flowchart: T above, below it the nodes, down to where runs start.

        The arrows from a state are numbered in the order of its union-list, the latest start first.
        """
        rows = []
        for number, state in enumerate(self.steps[-1].states if self.steps else ()):
            rows.append(f't{number}[["{mermaid_escaped(str(state).rpartition(" = ")[0])}"]]')
            rows += [f"t{number} -->|{place}| n{node}" for place, node in enumerate(state.nodes, 1)]
        for node in (node for step in self.steps for node in step.nodes):
            left, right = _SHAPES[node.kind]
            rows.append(f'n{node.number}{left}"{mermaid_escaped(node.words)}"{right}')
            rows += [f"n{node.number} --> n{child}" for child in node.children]
        return "\n    ".join(["flowchart TD", *rows]) + "\n"

    def _repr_html_(self) -> str:
        steps = []
        for step in self.steps:
            parts = []
            for name, items in step.parts:
                listed = "".join(f"<li><code>{escape(each)}</code></li>" for each in items)
                parts.append(f"<dt>{escape(name)}</dt><dd><ul>{listed}</ul></dd>")
            opened = "" if step.skipped else " open"
            steps.append(f"<details{opened}><summary>{escape(step.title)}</summary><dl>{''.join(parts)}</dl></details>")
        return f"<p>engine: {escape(self.engine)}</p>{''.join(steps)}"


def traced(query: QuerySpec, prepared: Prepared) -> Trace:
    """The trace of every event of the data, and of its end if that decides something."""
    program, source = prepared.program, prepared.source
    table = source.narrowed(source.available).table()
    if table.num_rows > MOST_EVENTS:
        raise StreamError(
            f"a trace is for a small run, and the data has {table.num_rows:,} events",
            hint=f"trace at most {MOST_EVENTS} of them; query.explain() says how the engine runs",
        )
    return Trace(program.choice.engine, tuple(_Tracer(query, prepared, table).steps()))


class _Tracer:
    """A run that is stopped after every event."""

    def __init__(self, query: QuerySpec, prepared: Prepared, table: pa.Table) -> None:
        self._source = opened(table, Reading())
        self._result = BatchMatches(query, replace(prepared, source=self._source), None)
        self._order = prepared.order
        self._program = prepared.program
        self._table = table
        self._run = Run(prepared.program, in_groups=False)  # only entries for single values can be followed
        engine = self._run.recogniser
        assert isinstance(engine, Recogniser | RegisterRecogniser)
        self._engine: Recogniser | RegisterRecogniser = engine
        self._keys: dict[int, tuple[Any, ...]] = {}
        self._seen = 0
        self._number: Sequence[int] = range(table.num_rows) if prepared.order is None else prepared.order.tolist()

    def steps(self) -> Iterator[TraceStep]:
        """A step for each event, and one for the end of the data if that can complete matches."""
        read = self._program.read
        source = self._source.narrowed(read) if read else self._source
        at = 0
        for batch in source.batches():
            for offset in range(batch.num_rows):
                yield self._step(at, batch.slice(offset, 1))
                at += 1
        rest = [match for chunk in self._run.rest() for match in self._matches(chunk)]
        if self._program.plan.late:
            yield TraceStep(None, {}, False, tuple(self._nodes()), tuple(self._states()), tuple(rest))

    def _step(self, at: int, batch: pa.RecordBatch) -> TraceStep:
        rows = self._run.intake.take(batch)
        if rows.partition is not None and rows.partition.size:
            key = tuple(batch.column(name)[0].as_py() for name in self._program.plan.partition)
            self._keys[int(rows.partition[0])] = key
        if self._run.suppressor is not None:
            self._run.suppressor.begin(rows)
        matches = tuple(match for chunk in self._run.recogniser.read(rows) for match in self._matches(chunk))
        row = {name: self._table[name][at].as_py() for name in self._table.column_names}
        skipped = not rows.position.size or not self._engine.relevant.size
        name = self._program.columns.position
        position = self._number[at] if name is None else int(row[name])
        return TraceStep(position, row, skipped, tuple(self._nodes()), tuple(self._states()), matches)

    def _matches(self, chunk: Any) -> Iterator[Match]:
        return self._result.objects(chunk if self._order is None else chunk.renumbered(self._order))

    # ------------------------------------------------------------ the tECS
    def _nodes(self) -> Iterator[TraceNode]:
        """The nodes that were added since the last event."""
        labels = self._engine.automaton.labels if isinstance(self._engine, Recogniser) else self._labels
        for number in range(self._seen, self._engine.cursor.nodes):
            kind, left, other = (int(self._engine.nodes[number, column]) for column in (KIND, LEFT, OTHER))
            if kind == UNION:
                yield TraceNode(number, "union", children=(left, other))
            elif kind == BOTTOM:
                yield TraceNode(number, "bottom", self._row(other))
            else:
                yield TraceNode(number, "output", self._row(other), tuple(sorted(labels[kind])), (left,))
        self._seen = self._engine.cursor.nodes

    @property
    def _labels(self) -> tuple[frozenset[str], ...]:
        return self._program.plan.automaton.labels

    def _row(self, position: int) -> int:
        return position if self._program.columns.position is not None else self._number[position]

    def _list(self, cell: int) -> tuple[int, ...]:
        nodes = []
        while cell >= 0:
            nodes.append(int(self._engine.cell_node[cell]))
            cell = int(self._engine.cell_next[cell])
        return tuple(nodes)

    def _states(self) -> Iterator[TraceState]:
        """T: the states that hold partial matches."""
        engine = self._engine
        if isinstance(engine, RegisterRecogniser):
            for number in range(engine.cursor.sets):
                if engine.head[number, 0] >= 0:
                    part = int(engine.sets.part[number])
                    yield TraceState(self._set(number), self._list(engine.head[number, 0]), self._keys.get(part, ()))
            return
        for part, slot in enumerate(engine.slots.slot_of):
            if slot < 0 or engine.epochs[slot] != engine.cursor.epoch:
                continue
            for state in np.flatnonzero(engine.head[slot] >= 0).tolist():
                name = self._subset(engine, state)
                yield TraceState(name, self._list(engine.head[slot, state]), self._keys.get(part, ()))

    def _subset(self, engine: Recogniser, state: int) -> str:
        """A set of automaton states; for MAX, also the states of the markings that it is compared with."""
        n = engine.automaton.n_states
        parts = [sorted(q - k * n for q in engine.det.subsets[state] if q // n == k) for k in range(3)]
        named = ["{" + ", ".join(f"q{q}" for q in part) + "}" for part in parts]
        return named[0] if engine.strategy != "max" else f"{named[0]} beside {named[1]}, below {named[2]}"

    def _set(self, number: int) -> str:
        """A set of configurations: states and what is stored."""
        assert isinstance(self._engine, RegisterRecogniser)
        sets = self._engine.sets
        begin, size = int(sets.begin[number]), int(sets.size[number])
        return "{" + ", ".join(self._configuration(sets.rows[begin + k]) for k in range(size)) + "}"

    def _configuration(self, row: Any) -> str:
        machine = self._program.machine
        assert machine is not None
        stored = [
            f"{_slot_text(register, what)} = {self._value(what, int(row[VALUES + slot]))}"
            for slot, (register, what) in enumerate(machine.slots)
            if int(row[FLAGS]) >> 2 * slot & 3 == KNOWN
        ]
        return f"q{int(row[STATE])}" + (f"({', '.join(stored)})" if stored else "")

    def _value(self, what: Leaf | Running, payload: int) -> str:
        """A stored value; one that is stored in a form of its own is shown in that form."""
        value = what.of if isinstance(what, Running) else what
        if not isinstance(what, Mark) and what.is_text:
            known = self._run.intake.strings
            return f"#{payload}" if known is None or payload >= len(known) else shown(known[payload].as_py())
        if isinstance(value, Mark) or value.form or (isinstance(what, Running) and what.how == TALLY):
            return str(payload)
        if value.kind == "float":
            return str(float(np.int64(payload).view(np.float64)))
        return shown(bool(payload)) if value.kind == "bool" else str(payload)


def _slot_text(register: str, what: Leaf | Running) -> str:
    if isinstance(what, Running):
        return what.text(register)
    return f"start of {register}" if isinstance(what, Mark) else f"{register}.{what.expression}"
