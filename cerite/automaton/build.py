"""From a pattern to its valuation CEA (CORE, theorem 1 and appendix A.1), with DESIGN's additions.

Takes patterns whose conditions each look at one event. The automaton is ε-free, trimmed, has one initial state that
nothing enters and one final state that nothing leaves; only an event of the match enters the final state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cerite.automaton.automaton import TRUE, Automaton, Transition
from cerite.automaton.determine import complement
from cerite.automaton.fragment import Fragment, Labels, Step, new_state, product, single, strict_fragment, union
from cerite.automaton.guards import ANY, Guard
from cerite.automaton.joining import Link, chain, repeat
from cerite.errors import PatternError
from cerite.pattern.alternatives import Intersection, Union
from cerite.pattern.atoms import Empty, Event, Nothing
from cerite.pattern.base import Pattern, transform, walk
from cerite.pattern.complement import Complement
from cerite.pattern.filtering import Filter
from cerite.pattern.iteration import Iteration
from cerite.pattern.naming import Named, Project
from cerite.pattern.references import turn
from cerite.pattern.rewrite.lp import lp_normal
from cerite.pattern.selection import Select, Strategy
from cerite.pattern.sequence import Concat, Sequence
from cerite.pattern.skipping import SkipAny, SkipNext
from cerite.pattern.variables import nullable
from cerite.pattern.window import Window
from cerite.predicate.expression import variables

MOST_STEPS = 200_000


def build(pattern: Pattern) -> Automaton:
    """The automaton of a pattern without registers.

    >>> from cerite.language.ceql import parse_pattern
    >>> automaton = build(parse_pattern("A AS x ; B+"))
    >>> automaton.n_states, [str(guard) for guard in automaton.conditions]
    (4, ['A', 'B'])
    """
    return _automaton(_fragment(prepared(pattern)), pattern)


def prepared(pattern: Pattern) -> Pattern:
    """The pattern in the form the construction reads: skips as sequences, references turned, filters on events."""
    return lp_normal(transform(turn(pattern), _skips_as_sequences))


def _skips_as_sequences(node: Pattern) -> Pattern:
    """⟲ and @ over parts that need an event are sequences, @ with negation in the gaps (definitions 44 and 45)."""
    if isinstance(node, (SkipAny, SkipNext)) and len(node.parts) > 1:
        if any(map(nullable, node.parts)):
            raise _unsupported(node, "⟲ and @ over parts that can be empty", "give every part at least one event")
        gaps = tuple((part,) if isinstance(node, SkipNext) else () for part in node.parts[1:])
        return Sequence(node.parts, gaps, span=node.span)
    if isinstance(node, SkipAny) and isinstance(node.parts[0], Iteration):
        return replace(node.parts[0], contiguous=False)
    return node.parts[0] if isinstance(node, (SkipAny, SkipNext)) and not isinstance(node.parts[0], Iteration) else node


def _fragment(node: Pattern) -> Fragment:
    match node:
        case Event(type=kind, condition=condition, output=output):
            if condition is not None and variables(condition):
                raise _registers(node)
            return single(Guard.of(kind, condition), node.labels, marks=output)
        case Empty():
            return Fragment(nullable=True)
        case Nothing():
            return Fragment()
        case Named(operand=operand, variable=variable):
            return _fragment(operand).relabelled(lambda labels: labels | {variable} if labels else labels)
        case Project(operand=operand, variables=kept):
            return _fragment(operand).relabelled(_restricted(frozenset(kept)))
        case Union(parts=parts):
            return union(map(_fragment, parts))
        case Intersection(parts=parts):
            return _intersection(node, parts)
        case Concat(parts=parts):
            return chain(tuple(map(_fragment, parts)), (Link(True),) * (len(parts) - 1))
        case Sequence(parts=parts, absent=absent):
            links = tuple(Link(False, tuple(map(_fragment, gap))) for gap in absent)
            return chain(tuple(map(_fragment, parts)), links)
        case Iteration():
            return _iteration(node)
        case Complement(operand=operand):
            return complement(_fragment(operand))
        case Select(strategy=Strategy.STRICT, operand=operand):
            return strict_fragment(_fragment(operand))
        case Filter(conditions=conditions):
            if any(on.reads for on in conditions):
                raise _registers(node)
            raise _unsupported(node, "a filter around a selection operator", "write the filter inside the operator")
    raise _unsupported(node, f"`{type(node).__name__}` inside a pattern", _ADVICE.get(type(node), "write it otherwise"))


_ADVICE: dict[type[Pattern], str] = {
    Window: "use a WITHIN clause for the whole query",
    Select: "select for the whole query: SELECT NEXT …, or WHERE NEXT(…) around the whole pattern",
    SkipNext: "write `e+` with gaps, or `A ; NOT B ; B`",
}


def _restricted(kept: Labels) -> Callable[[Labels], Labels]:
    return lambda labels: labels & kept


def _intersection(node: Pattern, parts: tuple[Pattern, ...]) -> Fragment:
    kinds = {type(each) for each in walk(node)}
    if Project in kinds and any(isinstance(each, Event) and not each.output for each in walk(node)):
        raise _unsupported(node, "AND over both projections and unmarked events", "project after the AND")
    result = _fragment(parts[0])
    for part in parts[1:]:
        result = product(result, _fragment(part))
    return result


def _iteration(node: Iteration) -> Fragment:
    """φ{n,m}: n copies, then repetition or further copies that may be left out."""
    link = Link(node.contiguous)
    copies = [_fragment(node.operand) for _ in range(max(node.least, 1) if node.most is None else node.most)]
    if sum(len(copy.steps) + len(copy.entries) for copy in copies) > MOST_STEPS:
        raise PatternError("this iteration makes the automaton too large", span=node.span, hint="use smaller bounds")
    if node.most is None:
        copies[-1] = repeat(copies[-1], link)
        if node.least == 0:
            copies[-1] = replace(copies[-1], nullable=True)
        return chain(tuple(copies), (link,) * (len(copies) - 1))
    optional = [replace(copy, nullable=True) for copy in copies[node.least :]]
    return chain((*copies[: node.least], *optional), (link,) * (len(copies) - 1))


def _automaton(fragment: Fragment, pattern: Pattern) -> Automaton:
    if any(not entry.marks for entry in fragment.entries):
        raise _unsupported(pattern, "a pattern that begins with an unmarked event", "mark the first event")
    final = new_state()
    steps = fragment.entries + fragment.steps
    ends = tuple(replace(step, target=final) for step in steps if step.target in fragment.exits and step.marks)
    return _numbered(dict.fromkeys(step for step in steps + ends if step.guard.possible), final).trim()


def _numbered(steps: dict[Step, None], final: int) -> Automaton:
    states: dict[int, int] = {-1: 0}
    guards: dict[Guard, int] = {ANY: TRUE}
    labels: dict[Labels, int] = {frozenset(): 0}
    transitions = []
    for step in steps:
        source = states.setdefault(step.source, len(states))
        target = states.setdefault(step.target, len(states))
        guard = guards.setdefault(step.guard, len(guards) - 1)
        transitions.append(Transition(source, guard, labels.setdefault(step.labels, len(labels)), target))
    last = states.setdefault(final, len(states))
    conditions = tuple(guard for guard in guards if guard is not ANY and guard != ANY)
    return Automaton(len(states), 0, frozenset((last,)), tuple(dict.fromkeys(transitions)), conditions, tuple(labels))


def _registers(node: Pattern) -> PatternError:
    return PatternError(
        "conditions that read another variable are not run by the engine yet", span=node.span,
        hint="the judge (cerite.matches) evaluates them on short streams; equality of keys can be PARTITION BY",
    )  # fmt: skip


def _unsupported(node: Pattern, what: str, advice: str) -> PatternError:
    return PatternError(f"the engine does not run {what} yet", span=node.span, hint=advice)
