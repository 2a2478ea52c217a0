"""Which variables a pattern binds, how often, in which order, and whether it can consume nothing.

`bound`, `written` and `counts` are static: they say what some match may do. Negated patterns and complements bind
nothing outside themselves; a projection hides what it does not list.
"""

from __future__ import annotations

from itertools import combinations
from math import inf

from cerite.pattern import nodes
from cerite.pattern.nodes import Pattern

Chain = (nodes.Sequence, nodes.Concat, nodes.SkipAny, nodes.SkipNext)


def visible(pattern: Pattern) -> tuple[Pattern, ...]:
    """The sub-patterns whose variables are the pattern's own: negated ones and complements are not."""
    if isinstance(pattern, nodes.Sequence):
        return pattern.parts
    return () if isinstance(pattern, nodes.Complement) else pattern.children


def bound(pattern: Pattern) -> frozenset[str]:
    """The variables that some match binds (ICDT's vdef).

    >>> from cerite.language.ceql import parse_pattern
    >>> sorted(bound(parse_pattern("A AS x ; NOT B ; (C OR D)+ AS y")))
    ['A', 'C', 'D', 'x', 'y']
    """
    if isinstance(pattern, nodes.Event):
        return pattern.labels
    names = frozenset().union(*map(bound, visible(pattern)))
    if isinstance(pattern, nodes.Named) and names:
        return names | {pattern.variable}
    return names & frozenset(pattern.variables) if isinstance(pattern, nodes.Project) else names


def written(pattern: Pattern) -> frozenset[str]:
    """The registers in which some match leaves an event: `bound`, and what SREMO stores without marking."""
    if isinstance(pattern, nodes.Event):
        return pattern.writes
    if isinstance(pattern, nodes.Project):
        return bound(pattern)
    names = frozenset().union(*map(written, visible(pattern)))
    return names | {pattern.variable} if isinstance(pattern, nodes.Named) and bound(pattern) else names


def nullable(pattern: Pattern) -> bool:
    """Whether the pattern can match without consuming an event."""
    match pattern:
        case nodes.Empty():
            return True
        case nodes.Event() | nodes.Nothing():
            return False
        case nodes.Union(parts=parts):
            return any(map(nullable, parts))
        case nodes.Iteration(operand=operand, least=least):
            return least == 0 or nullable(operand)
        case nodes.Complement(operand=operand):
            return not nullable(operand)
        case _:
            return all(map(nullable, visible(pattern)))


def counts(pattern: Pattern, variable: str) -> tuple[int, float]:
    """The least and the greatest number of events a match leaves in the variable's register, one after the other.

    >>> from cerite.language.ceql import parse_pattern
    >>> counts(parse_pattern("A AS x ; (B OR B AS x)"), "x"), counts(parse_pattern("(A AS x){2,}"), "x")
    ((1, 2), (2, inf))
    """
    match pattern:
        case nodes.Event():
            hit = int(variable in pattern.writes)
            return hit, hit
        case nodes.Named(operand=operand) if pattern.variable == variable:
            return marks(operand)
        case nodes.Project() if variable not in pattern.variables:
            return 0, 0
        case nodes.Union(parts=parts):
            each = [counts(part, variable) for part in parts]
            return min(low for low, _ in each), max(high for _, high in each)
        case nodes.Intersection(parts=parts):
            each = [counts(part, variable) for part in parts]
            return max(low for low, _ in each), sum(high for _, high in each)
        case nodes.Iteration(operand=operand, least=least, most=most):
            low, high = counts(operand, variable)
            return low * least, 0 if high == 0 else high * (inf if most is None else most)
        case _:
            each = [counts(part, variable) for part in visible(pattern)]
            return sum(low for low, _ in each), sum(high for _, high in each)


def marks(pattern: Pattern) -> tuple[int, float]:
    """The least and greatest number of events a match marks."""
    match pattern:
        case nodes.Event():
            return int(pattern.output), int(pattern.output)
        case nodes.Union(parts=parts) | nodes.Intersection(parts=parts):
            each = [marks(part) for part in parts]
            return min(low for low, _ in each), max(high for _, high in each)
        case nodes.Iteration(operand=operand, least=least, most=most):
            low, high = marks(operand)
            return low * least, 0 if high == 0 else high * (inf if most is None else most)
        case nodes.Project():
            return 0, inf
        case _:
            each = [marks(part) for part in visible(pattern)]
            return sum(low for low, _ in each), sum(high for _, high in each)


def may_precede(pattern: Pattern, earlier: str, later: str, *, again: bool = True) -> bool:
    """Whether in some match an event of `earlier` may come before an event of `later`.

    Without `again`, only within one repetition of every iteration, and not across the sides of an AND.
    """
    parts = visible(pattern)
    if isinstance(pattern, (*Chain, nodes.Permute)) or (
        again and isinstance(pattern, nodes.Intersection) and _has_room(pattern)
    ):
        pairs = list(combinations(parts, 2))
        if not isinstance(pattern, Chain):
            pairs += [(second, first) for first, second in pairs]
        if any(earlier in written(first) and later in written(second) for first, second in pairs):
            return True
    repeats = isinstance(pattern, nodes.Iteration) and (pattern.most is None or pattern.most > 1)
    if again and repeats and {earlier, later} <= written(parts[0]):
        return True
    if isinstance(pattern, nodes.Named) and pattern.variable in (earlier, later):
        return _named_precedes(pattern, earlier, later, again=again)
    return any(may_precede(part, earlier, later, again=again) for part in parts)


def may_precede_first(pattern: Pattern, earlier: str, later: str) -> bool:
    """Whether in some match an event of `earlier` may come before the first event of `later`.

    >>> from cerite.language.ceql import parse_pattern
    >>> [may_precede_first(parse_pattern(each), "B", "y") for each in ("B+ AS y", "B? ; B AS y", "(A AS y ; B)+")]
    [False, True, False]
    """
    if not {earlier, later} <= written(pattern):
        return False
    match pattern:
        case nodes.Event():
            return False
        case nodes.Union(parts=parts):
            return any(may_precede_first(part, earlier, later) for part in parts)
        case nodes.Iteration(operand=operand, most=most):
            again = most is None or most > 1
            return may_precede_first(operand, earlier, later) or (again and _has_alone(operand, earlier, later))
        case nodes.Named() if _is_one_event(pattern) or (pattern.variable == later and _marks_all(pattern)):
            return False
        case _ if isinstance(pattern, Chain):
            return _precedes_in_chain(pattern, earlier, later)
        case nodes.Named(operand=operand) if pattern.variable not in (earlier, later):
            return may_precede_first(operand, earlier, later)
        case nodes.Filter(operand=operand) | nodes.Having(operand=operand) | nodes.Window(operand=operand):
            return may_precede_first(operand, earlier, later)
    return may_precede(pattern, earlier, later)


def _precedes_in_chain(pattern: Pattern, earlier: str, later: str) -> bool:
    seen = False
    for part in visible(pattern):
        if may_precede_first(part, earlier, later) or (seen and later in written(part)):
            return True
        if counts(part, later)[0]:
            return False
        seen = seen or _has_alone(part, earlier, later)
    return False


def _has_alone(pattern: Pattern, one: str, other: str) -> bool:
    """Whether some match may leave an event in one register and none in the other."""
    return one in written(pattern) and counts(pattern, other)[0] == 0


def _marks_all(pattern: Pattern) -> bool:
    """Whether every event that the pattern reads is marked, so that the first one has all its names."""
    if isinstance(pattern, nodes.Event):
        return pattern.output
    if isinstance(
        pattern, (nodes.Complement, nodes.Project, nodes.SkipAny, nodes.SkipNext, nodes.Empty, nodes.Nothing)
    ):
        return False
    return all(map(_marks_all, pattern.children if not isinstance(pattern, nodes.Sequence) else pattern.parts))


def same_event(pattern: Pattern, one: str, two: str) -> bool:
    """Whether both variables always hold exactly one event, and the same one.

    >>> from cerite.language.ceql import parse_pattern
    >>> same_event(parse_pattern("A AS a ; C AS c"), "c", "C"), same_event(parse_pattern("A AS a ; C AS c"), "a", "c")
    (True, False)
    """
    single = all(counts(pattern, each) == (1, 1) for each in (one, two))
    return single and not may_precede(pattern, one, two) and not may_precede(pattern, two, one)


def may_coincide(pattern: Pattern, one: str, two: str) -> bool:
    """Whether in some match an event may be in both variables.

    >>> from cerite.language.ceql import parse_pattern
    >>> pattern = parse_pattern("A AS x ; (B OR A) AS y")
    >>> may_coincide(pattern, "A", "x"), may_coincide(pattern, "A", "y"), may_coincide(pattern, "B", "x")
    (True, True, False)
    """
    parts = visible(pattern)
    if isinstance(pattern, nodes.Event):
        return {one, two} <= set(pattern.writes)
    if isinstance(pattern, nodes.Named) and pattern.variable in (one, two):
        return {one, two} <= {pattern.variable, *written(pattern.operand)}
    if isinstance(pattern, nodes.Intersection):
        return {one, two} <= frozenset().union(*map(written, parts))
    return any(may_coincide(part, one, two) for part in parts)


def surely_precedes(pattern: Pattern, earlier: str, later: str) -> bool:
    """Whether in every match an event of `earlier` comes before each event of `later`."""
    if later not in written(pattern):
        return True
    parts = visible(pattern)
    if not parts or (isinstance(pattern, nodes.Named) and pattern.variable == later):
        return False
    known = False
    for part in parts:
        if not known and not surely_precedes(part, earlier, later):
            return False
        known = known or (isinstance(pattern, Chain) and counts(part, earlier)[0] > 0)
    return True


def _has_room(pattern: nodes.Intersection) -> bool:
    """Whether a match of an AND may have two events: no side is always one event."""
    return not any(_is_one_event(part) for part in pattern.parts)


def _is_one_event(pattern: Pattern) -> bool:
    if isinstance(pattern, (*Chain, nodes.Permute, nodes.Iteration, nodes.Complement)):
        return False
    return isinstance(pattern, nodes.Event) or (bool(pattern.children) and all(map(_is_one_event, pattern.children)))


def _named_precedes(pattern: nodes.Named, earlier: str, later: str, *, again: bool) -> bool:
    """Inside `φ AS x` every marked event is an x, so x stands for any of φ's variables."""
    own = bound(pattern.operand)
    firsts = own | {earlier} if pattern.variable == earlier else {earlier}
    seconds = own | {later} if pattern.variable == later else {later}
    return any(may_precede(pattern.operand, one, two, again=again) for one in firsts for two in seconds)
