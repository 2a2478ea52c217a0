"""The engines of a program: one that finds matches and one that counts them, over batches that an intake has taken.

Invariant: results do not depend on where batches are cut. The two engines read the same rows; each is created when
first needed, and must then be given every batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from cerite.core.kernel_cache import expect
from cerite.engine.bind import Program
from cerite.engine.counting.counter import Counter
from cerite.engine.counting.learnt import Learnt
from cerite.engine.counting.two_stacks import count_blocks, count_events
from cerite.engine.events.rows import Rows
from cerite.engine.groups.counter import GroupCounter
from cerite.engine.groups.crowd import are_few, counted_one_by_one
from cerite.engine.groups.enumerate import enumerate_runs
from cerite.engine.groups.finder import GroupFinder
from cerite.engine.groups.grouping import Grouping
from cerite.engine.groups.kernel import read_groups
from cerite.engine.recycle import Engine
from cerite.engine.registers.base import unneeded
from cerite.engine.registers.counter import RegisterCounter
from cerite.engine.registers.counter import count as count_registers
from cerite.engine.registers.recogniser import RegisterRecogniser
from cerite.engine.registers.recogniser import update as update_registers
from cerite.engine.results.output import MatchChunk
from cerite.engine.subset.recogniser import Recogniser, update
from cerite.engine.suppress import Suppressor
from cerite.engine.tecs.enumerate import enumerate_roots

ENGINES = ("recogniser", "counter")


class Engines:
    """What a program's events have led to so far: partial matches, or how many there are."""

    def __init__(self, program: Program, *, in_groups: bool | None = None, learnt: Learnt | None = None) -> None:
        """`in_groups` says whether registers are moved in groups where they can be; None lets the first events decide.

        They decide only if the engine was not used before them. `learnt` is where counting takes its tables from, and
        where `end` leaves them.
        """
        suppress, window = program.plan.suppress, program.plan.deciding if program.plan.late else None
        self.program, self._given, self._learnt = program, in_groups, learnt
        self._finds_in_groups = self._counts_in_groups = in_groups is not False
        self.suppressor = None if suppress is None else Suppressor(suppress, program.columns, program.schema, window)

    @cached_property
    def recogniser(self) -> Recogniser | RegisterRecogniser | GroupFinder:
        """The engine that finds the matches."""
        engine = self._recogniser()
        engine.suppressor = self.suppressor
        return engine

    def _recogniser(self) -> Recogniser | RegisterRecogniser | GroupFinder:
        plan, machine, grouping = self.program.plan, self.program.machine, self.program.grouping_for_matches
        if grouping is not None and self._finds_in_groups:
            expect("find matches with conditions across events", read_groups, enumerate_runs)
            return GroupFinder(grouping, consume=plan.consume, limit=plan.limit, shared_clock=self.program.shared_clock)
        if machine is not None:
            expect(
                "find matches with conditions across events", update_registers, enumerate_roots,
                without=unneeded(machine, maximal=plan.strategy == "max"),
            )  # fmt: skip
            return RegisterRecogniser(
                machine, consume=plan.consume, limit=plan.limit, strategy=plan.strategy,
                shared_clock=self.program.shared_clock,
            )  # fmt: skip
        expect("find matches", update, enumerate_roots)
        return Recogniser(
            plan.automaton, consume=plan.consume, limit=plan.limit, strategy=plan.strategy,
            shared_clock=self.program.shared_clock,
        )  # fmt: skip

    @cached_property
    def counter(self) -> Counter | RegisterCounter | GroupCounter:
        """The engine that counts the matches without enumerating them."""
        plan, machine, grouping = self.program.plan, self.program.machine, self.program.grouping
        windowed, clock = plan.window is not None, self.program.shared_clock
        if isinstance(grouping, Grouping) and self._counts_in_groups:
            expect("count with conditions across events", read_groups)
            return GroupCounter(grouping, consume=plan.consume, shared_clock=clock)
        if machine is not None:
            expect("count with conditions across events", count_registers, without=unneeded(machine))
            return RegisterCounter(machine, windowed=windowed, consume=plan.consume, shared_clock=clock)
        expect("count matches", count_events, *([count_blocks] if self.program.by_codes else []))
        return Counter(
            plan.automaton, windowed=windowed, consume=plan.consume, shared_clock=clock, learnt=self._learnt
        )  # fmt: skip

    def end(self) -> None:
        """The stream is over; what counting has learnt about the query is left for the next run."""
        counter = self.__dict__.get("counter")
        if isinstance(counter, Counter):
            counter.end()

    def read(self, rows: Rows) -> Iterator[MatchChunk]:
        """The matches that end in these rows, some at a time; to be read to the end before the rows after them."""
        grouping = self.program.grouping_for_matches
        if self._given is None and grouping is not None and "recogniser" not in self.__dict__:
            self._finds_in_groups = not are_few(grouping, rows)
        if self.suppressor is not None:
            self.suppressor.begin(rows)
        return self.recogniser.read(rows)

    def counted(self, rows: Rows) -> int:
        """How many matches end in these rows; enumerates only where a strategy, LIMIT or SUPPRESS needs it."""
        plan = self.program.plan
        if not plan.counts_without_enumerating:
            return self._occurrences(rows) if plan.reports_one else sum(map(len, self.read(rows)))
        grouping = self.program.grouping
        if self._given is None and isinstance(grouping, Grouping) and "counter" not in self.__dict__:
            self._counts_in_groups = not counted_one_by_one(grouping, rows)
        return self.counter.read(rows).matches

    def _occurrences(self, rows: Rows) -> int:
        """At how many events a match ends."""
        matches = self.read(rows)
        before = self.recogniser.occurrences
        self.recogniser.discard(matches)
        return self.recogniser.occurrences - before

    def rest(self, low: int | None = None) -> Iterator[MatchChunk]:
        """The matches whose windows are over: time has passed up to this low, or (None) nothing more will come."""
        if not self.program.plan.late:
            return iter(())
        recogniser = self.recogniser
        assert isinstance(recogniser, RegisterRecogniser)
        return recogniser.decide(everywhere=True) if low is None else recogniser.decide(low)

    def count_rest(self, low: int | None = None) -> int:
        """How many matches `rest` gives."""
        plan = self.program.plan
        if not plan.late or not plan.counts_without_enumerating:
            return sum(map(len, self.rest(low)))
        return self.count_all_rest(low)

    def count_all_rest(self, low: int | None = None) -> int:
        """How many matches `rest` decides, including those that SUPPRESS leaves out."""
        if not self.program.plan.late:
            return 0
        counter = self.counter
        assert isinstance(counter, RegisterCounter)
        return (counter.decide(everywhere=True) if low is None else counter.decide(low)).matches

    @property
    def active(self) -> int:
        """Deterministic states that hold partial matches now."""
        return (self.counter if "counter" in self.__dict__ else self.recogniser).active

    @property
    def used(self) -> list[Engine]:
        """The engines that have read something, and the suppressor, which keeps times of partitions."""
        engines = [self.__dict__[name] for name in ENGINES if name in self.__dict__]
        return engines if self.suppressor is None else [*engines, self.suppressor]
