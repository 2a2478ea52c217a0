"""Whether a match is identified by the positions that it marks: if so, NEXT and LAST report one for every occurrence.

Two runs that mark the same events may still label them differently (`A AS x OR A AS y`), or begin at different events
of which they mark none (`SELECT y` of `A AS x ; B AS y`). Where neither can happen, counting what a strategy leaves
means counting the events at which something is left.
"""

from __future__ import annotations

from cerite.automaton.automaton import TRUE, Automaton, Transition
from cerite.automaton.guards import Guard, Test

MOST = 20_000  # pairs of states that are looked at


def known_by_marks(automaton: Automaton) -> bool:
    """Whether no two matches mark the same positions; False where that takes too long to find out.

    It follows pairs of runs that mark the same events, and whether their labels have differed so far.

    >>> from cerite.automaton.build import build
    >>> from cerite.language.ceql import parse_pattern
    >>> [known_by_marks(build(parse_pattern(text))) for text in ("A+ ; A AS y", "A AS x OR A AS y", "A AS x OR B AS y")]
    [True, False, True]
    """
    unstarted = automaton.before | {automaton.initial}
    starting = (t for t in automaton.transitions if t.source in unstarted and t.target not in automaton.before)
    if not all(t.label for t in starting):
        return False
    leaving: dict[int, list[Transition]] = {}
    for transition in automaton.transitions:
        leaving.setdefault(transition.source, []).append(transition)
    first = (automaton.initial, automaton.initial, False)
    seen, todo = {first}, [first]
    while todo:
        one, other, differ = todo.pop()
        if differ and one in automaton.finals and other in automaton.finals:
            return False
        for t in leaving.get(one, ()):
            for u in leaving.get(other, ()):
                if bool(t.label) == bool(u.label) and _together(automaton, t, u):
                    pair = (t.target, u.target, differ or t.label != u.label)
                    if pair not in seen:
                        seen.add(pair)
                        todo.append(pair)
        if len(seen) > MOST:
            return False
    return True


def _together(automaton: Automaton, one: Transition, other: Transition) -> bool:
    """Whether one event may satisfy both conditions, as far as types tell."""
    if TRUE in (one.condition, other.condition):
        return True
    mine, theirs = (_types(automaton.conditions[each.condition]) for each in (one, other))
    return not mine or not theirs or mine == theirs


def _types(guard: object) -> frozenset[str]:
    assert isinstance(guard, Guard)
    return frozenset(test.type for test in guard.tests if isinstance(test, Test) and test.type is not None)
