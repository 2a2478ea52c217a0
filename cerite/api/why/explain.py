"""`query.why` and `query.why_not`: the judge reads the events of a match as a word, the engine says what it reported.

A partial match is ended by the first check that fails. Of all derivations of the events, `why_not` reports the one that
got furthest: the one whose first failing check is decided latest. Events for which every check holds are a match of the
pattern; if they are not reported, a clause of the query left them out.

Invariant: without the culprit and what is named besides it, the judge finds the match (tests/properties/test_why.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cerite.api.why.answer import Explained, Reason, Why, WhyNot, rows_text
from cerite.api.why.completing import Missing, completions, read
from cerite.api.why.scene import Ranks, Scene
from cerite.core.errors import StreamError
from cerite.core.match import Match
from cerite.pattern.absences import ends_in_absence
from cerite.pattern.nodes import Strategy
from cerite.pattern.query import Consume
from cerite.predicate.words import shown
from cerite.reference.semantics.derivations import Check, Derivation, Derivations


@dataclass(frozen=True, slots=True)
class _Reading:
    """Events read as a word: its derivations, in the stream that decides about it."""

    derivations: Derivations
    candidates: tuple[Derivation, ...]
    ranks: Ranks  # of the stream's events, in the whole stream

    def whole(self, ranks: frozenset[int]) -> Ranks:
        """Ranks in the part that was read, as ranks in the whole stream."""
        return tuple(self.ranks[rank] for rank in sorted(ranks))


def why(scene: Scene, match: Match) -> Why:
    """The conditions that admitted the events of a match, with the values that they compared."""
    ranks = tuple(sorted(scene.rank(position) for position in match.positions))
    first, last = scene.rank(match.start), scene.rank(match.end)
    restart = max((each + 1 for each in _completed(scene, last, first) if each < first), default=0)
    derivations, numbers = read(scene, ranks, first, last, restart)
    for derivation in derivations.of(scene.pattern, scene.query.within, scene.query.variables):
        if not derivation.failing and _is(derivation, match, scene, numbers):
            return _answer(scene, _Reading(derivations, (derivation,), numbers), derivation, match)
    raise StreamError(
        f"{match} is no match of the query in this data",
        hint=f"query.why_not(data, events={list(match.positions)}) says what is missing",
    )


def why_not(scene: Scene, ranks: Ranks) -> WhyNot:
    """What keeps these events, ranks in stream order, from being a match."""
    positions = tuple(scene.positions[rank] for rank in ranks)
    columns = _columns(scene)
    apart = _partitions(scene, ranks)
    if apart is not None:
        return WhyNot(positions, _reached(scene, ranks, 0), apart, columns=columns)
    first, last = ranks[0], ranks[-1]
    completed = _completed(scene, last, first)
    restart = max((each + 1 for each in completed if each < first), default=0)
    derivations, numbers = read(scene, ranks, first, last, restart)
    reading = _Reading(derivations, tuple(derivations.of(scene.pattern, scene.query.within)), numbers)
    if not reading.candidates:
        return _unlike(scene, ranks, derivations)
    consumed = next((each for each in completed if first <= each < last), None)
    candidates = [(derivation, _failing(scene, derivation, reading, consumed)) for derivation in reading.candidates]
    derivation, failing = max(candidates, key=lambda each: _progress(each[1]))
    if failing:
        culprit = failing[0]
        events = _events(scene, reading, derivation, culprit)
        reasons = [_reason(check, reading) for check in failing]
        return WhyNot(positions, events, reasons[0], reasons[1:], columns=columns)
    left_out = _left_out(scene, reading.whole(_seen(scene, derivation)), reading.ranks[derivation.valuation.end or 0])
    if left_out is not None:
        return WhyNot(positions, _events(scene, reading, derivation, None), left_out, columns=columns)
    answer = _answer(scene, reading, derivation, _match(derivation, scene, reading.ranks))
    return WhyNot(positions, answer.events, match=answer.match, why=answer, columns=columns)


# ---------------------------------------------------------------- reading events as a word
def _completed(scene: Scene, last: int, like: int) -> list[int]:
    """Where, before `last`, a match was completed that made the query forget the partial matches of this partition."""
    query = scene.query
    if query.consume is Consume.NONE or ends_in_absence(query.where):
        return []
    ends = {end for _, end, _ in scene.reported(replace(query, limit=1, suppress=None), last) if end < last}
    if query.consume is Consume.PARTITION:
        ends = {end for end in ends if scene.key(end) == scene.key(like)}
    return sorted(ends)


def _seen(scene: Scene, derivation: Derivation) -> frozenset[int]:
    """The ranks that SELECT shows of a derivation."""
    chosen = scene.query.variables
    return (derivation.valuation if chosen is None else derivation.valuation.projected(frozenset(chosen))).positions


def _match(derivation: Derivation, scene: Scene, numbers: Ranks) -> Match:
    chosen = scene.query.variables
    each = derivation.valuation if chosen is None else derivation.valuation.projected(frozenset(chosen))
    position = [scene.positions[rank] for rank in numbers]
    bound = ((name, position[rank]) for name, rank in each.bindings)
    match = Match.of(position[each.start or 0], position[each.end or 0], bound)
    return match if scene.semantics == "valuations" else match.without_bindings()


def _is(derivation: Derivation, match: Match, scene: Scene, numbers: Ranks) -> bool:
    """Whether a derivation is this match; positions may be reported in another order."""
    own = _match(derivation, scene, numbers)
    if (own.start, own.end, set(own.positions)) != (match.start, match.end, set(match.positions)):
        return False
    bound = {name: set(positions) for name, positions in match.bindings}
    return not bound or bound == {name: set(positions) for name, positions in own.bindings}


# ---------------------------------------------------------------- what does not hold
def _failing(scene: Scene, derivation: Derivation, reading: _Reading, consumed: int | None) -> list[Check]:
    """The checks that end a derivation, in the order in which they do."""
    failing = list(derivation.failing)
    if consumed is not None:
        text = f"CONSUME BY {scene.query.consume.value}: the match that ended at row {scene.positions[consumed]} "
        text += f"made the query forget row {scene.positions[reading.ranks[derivation.valuation.start or 0]]}"
        rank = sum(each <= consumed for each in reading.ranks) - 1
        failing.append(Check("consumption", False, text, rank))
    return sorted(failing, key=lambda check: check.rank)


def _progress(failing: list[Check]) -> tuple[float, int]:
    return (failing[0].rank if failing else float("inf")), -len(failing)


def _partitions(scene: Scene, ranks: Ranks) -> Reason | None:
    """What keeps the events from being in one partition."""
    names = scene.query.partition
    if not names:
        return None
    first = scene.key(ranks[0])
    for rank in ranks:
        key, position = scene.key(rank), scene.positions[rank]
        if key is None:
            return Reason("partition", f"row {position} has no {' and '.join(names)}: it is in no partition", position)
        if key != first:
            one, other = (_key_text(names, each) for each in (first, key))
            return Reason(
                "partition", f"row {scene.positions[ranks[0]]} is of {one}, row {position} of {other}", position
            )
    return None


def _key_text(names: tuple[str, ...], key: tuple[object, ...] | None) -> str:
    return ", ".join(f"{name} = {shown(value)}" for name, value in zip(names, key or (), strict=True))


def _unlike(scene: Scene, ranks: Ranks, derivations: Derivations) -> WhyNot:
    """The answer for events that do not have the form of the pattern; they may be only part of a reported match."""
    positions, columns = tuple(scene.positions[rank] for rank in ranks), _columns(scene)
    larger = next((each for each in scene.reported(scene.query, scene.rows - 1) if set(ranks) <= set(each[2])), None)
    match = None if larger is None else _reported_match(scene, *larger)
    if larger is not None and match is not None and set(larger[2]) == set(ranks):
        answer = why(scene, match)
        return WhyNot(positions, answer.events, match=match, why=answer, columns=columns)
    if match is None:
        words, missing = completions(scene, ranks)
        if words:
            return _completed_as(scene, ranks, words)
        if missing is not None:
            return _lacking(scene, ranks, missing)
    at = max(derivations.reached.at, 0)
    wanted = " or ".join(f"`{each}`" for each in derivations.reached.expected if each is not None)
    here = None if at == len(ranks) else positions[at]
    if here is None:
        text = f"after row {positions[-1]} the pattern needs {wanted} as well, and no more events are given"
    elif wanted:
        kind = derivations.stream.events[derivations.word[at]].type
        text = f"row {here} is `{kind}`, where the pattern has {wanted}"
    else:
        text = f"the pattern is complete before row {here}"
    return WhyNot(positions, _reached(scene, ranks, at), Reason("type", text, here), match=match, columns=columns)


def _completed_as(scene: Scene, ranks: Ranks, words: list[Ranks]) -> WhyNot:
    """What keeps these events from being a match together with others that the pattern needs, in the nearest case."""
    answer = max((why_not(scene, word) for word in words), key=lambda each: _nearness(scene, each))
    given = tuple(scene.positions[rank] for rank in ranks)
    added = tuple(each for each in answer.positions if each not in given)
    culprit = answer.culprit or Reason("missing", f"the pattern needs {rows_text(added)} as well")
    return WhyNot(
        given, answer.events, culprit, answer.besides, match=answer.match, added=added, columns=answer.columns
    )  # fmt: skip


def _nearness(scene: Scene, answer: WhyNot) -> tuple[int, int, int]:
    """How near events are to a match: they are one, only a clause leaves it out, or little fails and they lie close."""
    span = scene.rank(answer.positions[-1]) - scene.rank(answer.positions[0])
    failed = any(each.verdict == "failed" for each in answer.events)
    return (2 if answer.culprit is None else 1 - failed, -len(answer.besides), -span)


def _lacking(scene: Scene, ranks: Ranks, missing: Missing) -> WhyNot:
    """The answer where the pattern needs an event, and the stream has no such event in that place."""
    wanted = " or ".join(f"`{each or '_'}`" for each in sorted(missing.types, key=str))
    row = scene.positions
    place = [f"after row {row[missing.after]}"] if missing.after is not None else []
    place += [f"before row {row[missing.before]}"] if missing.before is not None else []
    whose = f" of {_key_text(scene.query.partition, scene.key(ranks[0]))}" if scene.query.partition else ""
    text = f"the pattern needs {wanted} {' and '.join(place)}, and the data has none{whose} there"
    given = tuple(row[rank] for rank in ranks)
    reached = sum(rank in missing.word[: missing.at] for rank in ranks)
    added = tuple(row[rank] for rank in missing.word if rank not in ranks)
    return WhyNot(
        given, _reached(scene, ranks, reached), Reason("missing", text), added=added, columns=_columns(scene)
    )  # fmt: skip


def _reported_match(scene: Scene, start: int, end: int, ranks: Ranks) -> Match:
    """A match of which only the positions are known."""
    number = scene.positions
    return Match(number[start], number[end], tuple(number[rank] for rank in ranks))


def _left_out(scene: Scene, ranks: Ranks, end: int) -> Reason | None:
    """The clause that keeps a match of the pattern from being reported, if there is one."""
    query = scene.query
    if query.strategy is not None or query.consume is not Consume.NONE:
        everything = replace(query, limit=None, suppress=None)
        same_end = [each for each in scene.reported(everything, end) if each[1] == end]
        if all(set(each[2]) != set(ranks) for each in same_end):
            return _not_chosen(scene, ranks, end, [each[2] for each in same_end])
    if query.limit is not None:
        first = [each for each in scene.reported(replace(query, suppress=None), end) if each[1] == end]
        if all(set(each[2]) != set(ranks) for each in first):
            others = ", ".join(rows_text(_numbers(scene, each[2])) for each in first[: query.limit])
            return Reason("limit", f"LIMIT {query.limit} at row {scene.positions[end]}: reported are {others}")
    if query.suppress is not None:
        loud = [each for each in scene.reported(query, end) if _speaks(scene, each[1], end)]
        if all(set(each[2]) != set(ranks) for each in loud):
            last = scene.positions[_silencing(scene, ranks, end, loud)[1]]
            return Reason("suppression", f"SUPPRESS {query.suppress}: a match was reported that ends at row {last}")
    return None


def _silencing(scene: Scene, ranks: Ranks, end: int, loud: list[tuple[int, int, Ranks]]) -> tuple[int, int, Ranks]:
    """The last of the reported matches that was known before these events became a match."""
    known = loud[-1]
    for each in scene.reported(replace(scene.query, limit=None, suppress=None), end):
        if set(each[2]) == set(ranks):
            break
        known = each if each in loud else known
    return known


def _not_chosen(scene: Scene, ranks: Ranks, end: int, chosen: list[Ranks]) -> Reason:
    query = scene.query
    if query.strategy is None:  # what is decided late is consumed late
        text = f"CONSUME BY {query.consume.value}: a match that was decided before made the query forget them"
        return Reason("consumption", text)
    if query.strategy is Strategy.STRICT:
        missing = tuple(rank for rank in range(ranks[0], ranks[-1]) if rank not in ranks and _near(scene, rank, end))
        return Reason("strategy", f"STRICT: {rows_text(_numbers(scene, missing))} between them")
    others = chosen if query.strategy is not Strategy.MAX else [each for each in chosen if set(ranks) < set(each)]
    preferred = " and ".join(rows_text(_numbers(scene, each)) for each in others[:3])
    begins = f"from row {scene.positions[others[0][0]]} " if len(others) == 1 else ""
    too = f"which ends at row {scene.positions[end]}, too"
    return Reason("strategy", f"{query.strategy.value} preferred the match {begins}({preferred}), {too}")


def _speaks(scene: Scene, one: int, other: int) -> bool:
    """Whether a match that ends at the one event silences those that end at the other."""
    suppress = scene.query.suppress
    return suppress is None or not suppress.per_partition or scene.key(one) == scene.key(other)


def _near(scene: Scene, rank: int, end: int) -> bool:
    return not scene.query.partition or scene.key(rank) == scene.key(end)


def _numbers(scene: Scene, ranks: Ranks) -> tuple[int, ...]:
    return tuple(scene.positions[rank] for rank in ranks)


# ---------------------------------------------------------------- the answer in words
def _columns(scene: Scene) -> tuple[str, ...]:
    return tuple(name for name in (scene.columns.time,) if name is not None)


def _reason(check: Check, reading: _Reading) -> Reason:
    position = None if check.about is None else reading.derivations.stream.events[check.about].position
    return Reason(check.kind, check.text, position)


def _answer(scene: Scene, reading: _Reading, derivation: Derivation, match: Match) -> Why:
    whole = [_reason(check, reading) for check in derivation.checks if check.about is None]
    return Why(match, _events(scene, reading, derivation, None), [*whole, *_clauses(scene, match)], _columns(scene))


def _clauses(scene: Scene, match: Match) -> Iterator[Reason]:
    query = scene.query
    if query.partition:
        yield Reason("partition", f"all are of {_key_text(query.partition, scene.key(scene.rank(match.end)))}")
    if query.strategy is not None:
        yield Reason("strategy", f"{query.strategy.value} takes it among the matches that end at row {match.end}")


def _events(scene: Scene, reading: _Reading, derivation: Derivation, culprit: Check | None) -> list[Explained]:
    """The events of a derivation with the checks of each, up to the culprit."""
    explained = []
    for rank in sorted(derivation.valuation.positions):
        whole = reading.ranks[rank]
        names = tuple(sorted(name for name, place in derivation.valuation.bindings if place == rank))
        reasons = tuple(_reason(check, reading) for check in derivation.checks if check.about == rank and check.holds)
        row, position = scene.event(whole), scene.positions[whole]
        if culprit is None or (rank < culprit.rank and culprit.about != rank):
            explained.append(Explained(position, names, row, reasons))
        elif culprit.about == rank or (culprit.about is None and rank == culprit.rank):
            explained.append(Explained(position, names, row, (_reason(culprit, reading),), "failed"))
        else:
            explained.append(Explained(position, names, row, (), "not reached"))
    return explained


def _reached(scene: Scene, ranks: Ranks, at: int) -> list[Explained]:
    """Events of which only the types were looked at, up to the one that does not fit."""
    fits = Reason("type", "its type fits")
    explained = []
    for place, rank in enumerate(ranks):
        verdict = "met" if place < at else "not reached"
        explained.append(Explained(scene.positions[rank], (), scene.event(rank), (fits,), verdict))  # type: ignore[arg-type]
    return explained
