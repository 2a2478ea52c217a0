"""What the tests of finding, counting and snapshots share: a batch read, and the matches in the oracle's form."""

from itertools import pairwise

from cerite.automaton import TRUE, Automaton, Transition
from cerite.engine.bind import Program
from cerite.engine.groups.finder import GroupFinder
from cerite.engine.groups.grouping import Grouping
from cerite.engine.results.output import MatchChunk
from cerite.engine.run import Run
from cerite.engine.subset.recogniser import Recogniser
from tests.engine_core.cases import Batch, Case
from tests.engine_core.oracle import Match, matches


def expected_counts(case: Case) -> tuple[list[int], list[int]]:
    expected = matches(case.automaton, case.events, case.consume)
    bounds = [0, *case.cuts, len(case.events)]
    parts = [expected[a:b] for a, b in pairwise(bounds)]
    return [sum(map(len, part)) for part in parts], [sum(map(bool, part)) for part in parts]


def in_groups(program: Program) -> Run:
    """A run that finds in groups whatever the chooser thinks of it, if that is possible at all."""
    run, grouping = Run(program), program.grouping
    if isinstance(grouping, Grouping):
        plan = program.plan
        engine = GroupFinder(grouping, consume=plan.consume, limit=plan.limit, shared_clock=program.shared_clock)
        engine.suppressor = run.suppressor
        run.__dict__["recogniser"] = engine
    return run


def kleene() -> Automaton:
    """a ; b+ ; c"""
    t = Transition
    return Automaton(
        4, 0, frozenset({3}),
        (t(0, 0, 1, 1), t(1, TRUE, 0, 1), t(1, 1, 2, 2), t(2, TRUE, 0, 2), t(2, 1, 2, 2), t(2, 2, 3, 3)),
        (0, 1, 2), (frozenset(), frozenset("a"), frozenset("b"), frozenset("c")),
    )  # fmt: skip


def as_tuples(chunk: MatchChunk) -> list[Match]:
    rows = chunk.to_arrow().to_pydict()
    columns = zip(rows["start"], rows["end"], rows["positions"], rows["labels"], strict=True)
    return [(start, end, tuple(zip(ps, ls, strict=True))) for start, end, ps, ls in columns]


def read(recogniser: Recogniser, batch: Batch) -> list[Match]:
    chunks = recogniser.feed(batch.bits, batch.key, batch.low, batch.position, batch.partition)
    return [match for chunk in chunks for match in as_tuples(chunk)]


def in_order(reported: list[set[Match]]) -> list[set[Match]]:
    return [at for at in reported if at]


def by_end(reported: list[Match]) -> list[set[Match]]:
    ends = list(dict.fromkeys(match[1] for match in reported))
    assert ends == sorted(ends)
    return [{match for match in reported if match[1] == end} for end in ends]
