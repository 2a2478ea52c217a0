"""What `why` and `why_not` say is what the judge says.

`Derivations` are compared with the judge pattern by pattern: what holds in every check is a valuation of the judge, and
what does not becomes one when the constructs that are named as failing are taken out of the pattern.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from cerite.api.why.answer import Why
from cerite.core.errors import BudgetError, PatternError
from cerite.language.ceql import parse_condition
from cerite.pattern import (
    Complement,
    Concat,
    Consume,
    Event,
    Filter,
    Having,
    Iteration,
    Pattern,
    Project,
    QuerySpec,
    Select,
    Sequence,
    Size,
    Window,
    transform,
)
from cerite.pattern.absences import has_absence
from cerite.pattern.check import check
from cerite.pattern.nodes import walk
from cerite.pattern.references import resolve
from cerite.pattern.rewrite.skips import expand_skips
from cerite.predicate.evaluate import holds
from cerite.predicate.expression import Expression, Reference, aggregates, conjunction, references
from cerite.predicate.words import conjuncts
from cerite.reference.semantics import Stream, matches
from cerite.reference.semantics.derivations import Check, Derivation, Derivations
from cerite.reference.semantics.patterns import Evaluator, Valuation
from tests import strategies as random
from tests.dressed import PLAIN
from tests.properties.absent import PLAIN_QUERIES
from tests.properties.agreement import (
    SEMANTICS,
    Rows,
    cases,
    engine_queries,
    looked_at,
    picks,
    ready,
    runnable,
    sorted_window,
)
from tests.telling import Share, often, telling, weakened

WINDOWS = st.none() | random.sizes
WORDS = st.sets(st.integers(0, 5), min_size=1, max_size=4).map(sorted)


def judged(pattern: Pattern, stream: Stream, within: Size | None) -> set[Valuation]:
    """The judge's valuations that are matches, as the clauses have them."""
    every = (each for each in Evaluator(stream).within(pattern, within) if not each.is_empty and each.end == each.hi)
    return {each for each in every if within is None or stream.fits(within, each.start or 0, each.end or 0)}


def derivations_of(pattern: Pattern, stream: Stream, within: Size | None, word: Any) -> list[Derivation]:
    try:
        return list(Derivations(stream, word).of(pattern, within))
    except BudgetError:
        assume(False)
        raise


# ---------------------------------------------------------------- derivations against the judge
def derivations_agree(query: QuerySpec, rows: Rows, word: list[int], share: Share, *, easier: bool) -> None:
    assume(runnable_by_judge(query))
    if easier:
        query, rows = telling(query, rows, lambda one, some: matches(one, Stream.of(some, time="at")))
    pattern, stream = expand_skips(resolve(query.where)), Stream.of(rows, time="at")
    expected = judged(pattern, stream, query.within)
    informative = bool(expected)
    for each in words_of(query, rows, expected, word):
        derivations = derivations_of(pattern, stream, query.within, each)
        assert {derivation.valuation for derivation in derivations if not derivation.failing} == {
            valuation for valuation in expected if valuation.positions == frozenset(each)
        }, each
        failing = sorted((each for each in derivations if each.failing), key=lambda each: each.failing[0].rank)
        for derivation in (*failing[:1], *failing[-2:]):
            repaired_agrees(pattern, stream, query.within, derivation)
        informative = informative or bool(failing)
        if not derivations and all(map(is_plain, walk(pattern))):
            loose = judged(transform(pattern, loosened), stream, None)
            assert not any(valuation.positions == frozenset(each) for valuation in loose), each
    share.note(informative)


def runnable_by_judge(query: QuerySpec) -> bool:
    try:
        check(query)
    except PatternError:
        return False
    return True


def is_plain(node: Pattern) -> bool:
    """Whether all events that the pattern reads are in the match."""
    return not isinstance(node, (Complement, Project)) and (not isinstance(node, Event) or node.output)


def loosened(node: Pattern) -> Pattern:
    """The types and their order: all that must fit before anything is checked."""
    match node:
        case Event():
            return replace(node, condition=None)
        case Filter() | Having() | Window() | Select():
            return node.operand
        case Concat() | Sequence():
            return Sequence(node.parts)
        case Iteration():
            return replace(node, contiguous=False)
    return node


def words_of(query: QuerySpec, rows: Rows, expected: set[Valuation], word: list[int]) -> list[tuple[int, ...]]:
    """Events that are a match, that are one but for the conditions, and any."""
    stream = Stream.of(rows, time="at")
    bare = judged(expand_skips(resolve(weakened(query.where, drop=True))), stream, query.within)
    some = [sorted({tuple(sorted(each.positions)) for each in matches})[:3] for matches in (expected, bare)]
    return [each for each in (*some[0], *some[1], tuple(rank for rank in word if rank < len(rows))) if each]


def repaired_agrees(pattern: Pattern, stream: Stream, within: Size | None, derivation: Derivation) -> None:
    """Without what fails the judge has the valuation."""
    if has_absence(pattern) and any(check.kind == "window" for check in derivation.failing):
        return  # a wider window is a longer absence
    size = None if any(check.kind == "window" and check.owner is None for check in derivation.failing) else within
    bare = Evaluator(stream).within(repaired(pattern, derivation.failing), size)
    assert _bound(derivation.valuation) in {_bound(each) for each in bare}, [check.text for check in derivation.failing]


def _bound(each: Valuation) -> object:
    return (each.lo, each.hi, each.start, each.end, each.bindings)


def repaired(pattern: Pattern, failing: tuple[Check, ...]) -> Pattern:
    """The pattern without what failed; a strategy around it says nothing any more."""

    def change(node: Pattern) -> Pattern:
        own = [check for check in failing if check.owner is node]
        within = {id(each) for each in walk(node)}
        changed = node.map(change)
        if isinstance(changed, Select):
            return changed.operand if any(id(check.owner) in within for check in failing) else changed
        for failed in own:
            changed = _without(changed, failed)
        return changed

    return change(pattern)


def _without(node: Pattern, check: Check) -> Pattern:
    match node:
        case Event():
            return replace(node, condition=_less(node.condition, check.part))
        case Filter():
            conditions = tuple(replace(on, condition=_less(on.condition, check.part)) for on in node.conditions)
            return replace(node, conditions=tuple(on for on in conditions if on.condition is not None))
        case Having():
            weaker = (_less(each, check.part) for each in node.conditions)
            return replace(node, conditions=tuple(each for each in weaker if each is not None))
        case Concat():
            return Sequence(node.parts)
        case Iteration():
            return replace(node, contiguous=False)
        case Window():
            return node.operand
        case Sequence():
            gaps = tuple(tuple(each for each in gap if each != check.part) for gap in node.absent)
            before = tuple(each for each in node.before if each != check.part)
            return Sequence(node.parts, gaps, before, tuple(each for each in node.after if each != check.part))
    raise AssertionError(f"nothing of {node} can fail")


def _less(condition: Expression | None, part: Any) -> Any:
    return conjunction(*(each for each in conjuncts(condition) if each != part))


EASIER = st.sampled_from((True, True, False))  # mostly a pattern with something to match
PATTERNS = random.checked_patterns(size=5) | random.register_patterns(2) | random.regular_patterns(size=5)


@cases(often(500), PATTERNS, random.streams(6), WINDOWS, WORDS, EASIER)
def test_ways_without_a_fault_are_valuations_and_the_others_become_some(
    share: Share, pattern: Pattern, rows: Rows, within: Size | None, word: list[int], easier: bool
) -> None:
    derivations_agree(QuerySpec(pattern, within=within), rows, word, share, easier=easier)


@cases(often(200), PLAIN_QUERIES, random.streams(6), WORDS, st.booleans())
def test_derivations_of_patterns_with_absences(
    share: Share, query: QuerySpec, rows: Rows, word: list[int], easier: bool
) -> None:
    derivations_agree(query, rows, word, share, easier=easier)


# ---------------------------------------------------------------- explanations against the judge
def explained(
    query: QuerySpec, rows: Rows, semantics: Any, share: Share, *, easier: bool = True
) -> tuple[QuerySpec, Rows, Any]:
    """A case that the engine runs, mostly (if it may be made easier) one with a match, and its events as a table."""
    if easier:
        query, rows = telling(query, rows, lambda one, some: looked_at(one, some, semantics))
    if not sorted_window(query, rows):
        query = replace(query, within=Size.events(4))
    assume(runnable(query))
    table = PLAIN.table(rows)
    return query, table.to_pylist(), table


def with_window(query: QuerySpec) -> QuerySpec:
    return query if runnable(query) else replace(query, within=Size.events(5))


CLAUSES = engine_queries() | random.queries(random.register_patterns(2)).map(with_window)


@cases(often(160), CLAUSES, random.streams(7), SEMANTICS)
def test_why_names_conditions_that_the_judge_finds_true(
    share: Share, query: QuerySpec, rows: Rows, semantics: Any
) -> None:
    query, rows, table = explained(query, rows, semantics, share)
    matches = ready(query).run(table, time="at", semantics=semantics).head(3)
    for match in matches:
        if not match.positions:
            continue  # SELECT shows nothing of it
        answer = ready(query).why(match)
        assert answer.match == match
        assert set(match.positions) <= {each.position for each in answer.events}
        for each in answer.events:
            assert each.verdict == "met"
            for reason in each.reasons:
                assert_true(reason.text, each.position, answer, rows)
    share.note(bool(matches))


def assert_true(text: str, position: int, answer: Why, rows: Rows) -> None:
    """The condition that is named holds of the event, as far as the events that are shown decide about it."""
    condition = parse_condition(text[1 : text.rindex("`")])
    bound: dict[str, list[int]] = {}
    for each in answer.events:
        for name in each.variables:
            bound.setdefault(name, []).append(each.position)

    def lookup(reference: Reference) -> dict[str, Any] | None:
        earlier = [each for each in bound.get(reference.variable, ()) if each < position]
        later = [each for each in bound.get(reference.variable, ()) if each > position]
        return rows[max(earlier)] if earlier else rows[min(later)] if later else None

    unseen = any(lookup(each) is None for each in references(condition))  # stored, or projected away
    if not unseen and not aggregates(condition):
        assert holds(condition, rows[position], lookup), text


@cases(often(240, by_day=120), CLAUSES, random.streams(7), SEMANTICS, WORDS, st.integers(0, 9))
def test_what_why_not_names_is_what_kept_the_events_from_being_a_match(
    share: Share, query: QuerySpec, rows: Rows, semantics: Any, word: list[int], which: int
) -> None:
    query, rows, table = explained(query, rows, semantics, share, easier=which % 2 == 0)
    word = chosen_word(query, rows, word, which)
    assume(word)
    answer = ready(query).why_not(table, events=word, time="at", semantics=semantics)
    reported = positions_of(query, rows, semantics)
    everything = replace(query, limit=None, suppress=None)
    whole = replace(everything, items=None, measures=(), strategy=None, consume=Consume.NONE)
    fits = frozenset(word) in positions_of(whole, rows, semantics)
    kind = None if answer.culprit is None else answer.culprit.kind
    share.note(kind is not None and kind != "type")
    if kind is None:
        shown = frozenset(answer.match.positions) if answer.match is not None else frozenset()
        assert shown in (positions_of(everything, rows, semantics) if picks(query) else reported)
        assert shown == frozenset(word) or fits
    elif kind in ("condition", "contiguity", "negation", "window", "partition", "type", "missing") or answer.besides:
        assert not fits
    else:
        assert_clause(kind, query, rows, semantics, frozenset((*word, *answer.added)))


@cases(often(160), CLAUSES, random.streams(7), SEMANTICS, st.integers(0, 99))
def test_the_event_that_was_left_out_is_looked_for(
    share: Share, query: QuerySpec, rows: Rows, semantics: Any, which: int
) -> None:
    """Of events that have the form of the pattern one is not given: one more makes them whole again."""
    query, rows, table = explained(
        replace(query, items=None, measures=()), rows, semantics, share, easier=which % 2 == 0
    )
    bare = replace(query, strategy=None, limit=None, suppress=None, consume=Consume.NONE)
    loose = replace(bare, where=weakened(query.where, drop=True))
    some = sorted(sorted(each) for each in positions_of(loose, rows, "complex-events") if len(each) > 1)
    assume(some)
    whole = some[which % len(some)]
    given = [each for place, each in enumerate(whole) if place != which % len(whole)]
    answer = ready(query).why_not(table, events=given, time="at", semantics=semantics)
    share.note(bool(answer.added) or answer.match is not None)
    assert set(given).isdisjoint(answer.added)
    if answer.added:
        assert not any(set(given) <= set(each) for each in positions_of(query, rows, semantics))
    if answer.culprit is not None and answer.culprit.kind in ("type", "missing"):
        assert answer.match is not None or not all(map(is_plain, walk(query.where)))
    elif answer.added:
        assert len(answer.added) == 1


def assert_clause(kind: str, query: QuerySpec, rows: Rows, semantics: Any, word: frozenset[int]) -> None:
    """Without the clause that is named, and those that come after it, the judge has the match."""
    everything = replace(query, items=None, measures=(), limit=None, suppress=None)
    if kind in ("consumption", "strategy"):  # STRICT leaves out what would have been consumed by
        everything = replace(everything, consume=Consume.NONE, strategy=None)
    if kind == "strategy":
        everything = replace(everything, where=without_strategies(query.where))
    assert word in positions_of(everything, rows, semantics), kind


def without_strategies(node: Pattern) -> Pattern:
    """The pattern without strategies on its parts, but for what it negates."""
    if isinstance(node, Complement):
        return node
    if isinstance(node, Sequence):
        return replace(node, parts=tuple(map(without_strategies, node.parts)))
    return without_strategies(node.operand) if isinstance(node, Select) else node.map(without_strategies)


def positions_of(query: QuerySpec, rows: Rows, semantics: Any) -> set[frozenset[int]]:
    judged_matches = matches(query, Stream.of(rows, time="at"), semantics=semantics)
    return {frozenset(match.positions) for match in judged_matches}


def chosen_word(query: QuerySpec, rows: Rows, word: list[int], which: int) -> list[int]:
    """Some events: any, a match but for the clauses, or one but for clauses and conditions."""
    bare = replace(query, items=None, measures=(), strategy=None, limit=None, suppress=None, consume=Consume.NONE)
    easier = replace(bare, where=weakened(query.where, drop=True))
    exact = positions_of(bare, rows, "complex-events")
    words = set() if which > 7 else exact
    if which in (1, 2, 3, 5, 6):  # what is no match of the pattern, but for its conditions, if there is any
        words = positions_of(easier, rows, "complex-events") - exact or exact
    some = sorted(sorted(each) for each in words if each)
    return some[which % len(some)] if some else [rank for rank in word if rank < len(rows)]
