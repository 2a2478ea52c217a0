"""From a pattern to its automaton (CORE, theorem 1 and appendix A.1; SRT report, theorem 26), with DESIGN's additions.

A pattern whose conditions each look at one event gives a valuation CEA, one that reads other variables an SRT. The
automaton is ε-free, trimmed, has one initial state that nothing enters and one final state that nothing leaves; only an
event of the match enters the final state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cerite.automaton.automaton import TRUE, Automaton, Transition
from cerite.automaton.determine import complement
from cerite.automaton.fragment import Fragment, Labels, Step, new_state, product, single, strict_fragment, union
from cerite.automaton.guards import ANY, Guard
from cerite.automaton.joining import Link, chain, repeat
from cerite.automaton.scopes import also_bound, check_scopes, hidden, narrowed, remembers
from cerite.automaton.windows import windowed
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
MOST_STEPS = 200_000


def build(pattern: Pattern) -> Automaton:
    """The automaton of a pattern.

    >>> from cerite.language.ceql import parse_pattern
    >>> automaton = build(parse_pattern("A AS x ; B+"))
    >>> automaton.n_states, [str(guard) for guard in automaton.conditions]
    (4, ['A', 'B'])
    """
    whole = prepared(pattern)
    check_scopes(whole)
    return _automaton(_Builder(whole).fragment(whole), pattern)


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


@dataclass(frozen=True)
class _Builder:
    """Builds the fragments of the parts of one pattern."""

    whole: Pattern

    def fragment(self, node: Pattern) -> Fragment:
        """The fragment of one part."""
        match node:
            case Event(type=kind, condition=condition, output=output):
                return single(Guard.of(kind, condition), node.labels, marks=output, writes=node.writes)
            case Empty():
                return Fragment(nullable=True)
            case Nothing():
                return Fragment()
            case Named(operand=operand, variable=variable):
                return also_bound(self.fragment(operand), variable)
            case Project(operand=operand):
                return hidden(self.fragment(operand), node, self.whole)
            case Union(parts=parts):
                return union(map(self.fragment, parts))
            case Intersection(parts=parts):
                return self._intersection(node, parts)
            case Concat(parts=parts):
                return chain(tuple(map(self.fragment, parts)), (Link(True),) * (len(parts) - 1))
            case Sequence(parts=parts, absent=absent):
                links = tuple(Link(False, tuple(map(self._absent, gap))) for gap in absent)
                return chain(tuple(map(self.fragment, parts)), links)
            case Iteration():
                return self._iteration(node)
            case Window(operand=operand, size=size):
                return windowed(self.fragment(operand), size)
            case Complement(operand=operand):
                return complement(self._absent(operand))
            case Select(strategy=Strategy.STRICT, operand=operand):
                return strict_fragment(self.fragment(operand))
            case Filter(operand=operand, conditions=conditions):
                result = self.fragment(operand)
                for on in conditions:
                    result = narrowed(result, on.variable, on.condition)
                return result
        advice = _ADVICE.get(type(node), "write it otherwise")
        raise _unsupported(node, f"`{type(node).__name__}` inside a pattern", advice)

    def _absent(self, node: Pattern) -> Fragment:
        """A part that must not occur: it is read by the subsets of its states, so it has no memory of its own."""
        if remembers(node) or any(isinstance(each, Window) for each in walk(node)):
            raise _unsupported(node, "negation of a pattern with a memory of its own", "negate something simpler")
        return self.fragment(node)

    def _intersection(self, node: Pattern, parts: tuple[Pattern, ...]) -> Fragment:
        kinds = {type(each) for each in walk(node)}
        if Project in kinds and any(isinstance(each, Event) and not each.output for each in walk(node)):
            raise _unsupported(node, "AND over both projections and unmarked events", "project after the AND")
        result = self.fragment(parts[0])
        for part in parts[1:]:
            result = product(result, self.fragment(part))
        return result

    def _iteration(self, node: Iteration) -> Fragment:
        """φ{n,m}: n copies, then repetition or further copies that may be left out."""
        link = Link(node.contiguous)
        copies = [self.fragment(node.operand) for _ in range(max(node.least, 1) if node.most is None else node.most)]
        if sum(len(copy.steps) + len(copy.entries) for copy in copies) > MOST_STEPS:
            raise PatternError(
                "this iteration makes the automaton too large", span=node.span, hint="use smaller bounds"
            )
        if node.most is None:
            copies[-1] = repeat(copies[-1], link)
            if node.least == 0:
                copies[-1] = replace(copies[-1], nullable=True)
            return chain(tuple(copies), (link,) * (len(copies) - 1))
        optional = [replace(copy, nullable=True) for copy in copies[node.least :]]
        return chain((*copies[: node.least], *optional), (link,) * (len(copies) - 1))


_ADVICE: dict[type[Pattern], str] = {
    Select: "select for the whole query: SELECT NEXT …, or WHERE NEXT(…) around the whole pattern",
    SkipNext: "write `e+` with gaps, or `A ; NOT B ; B`",
}


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
    read = frozenset().union(*(step.guard.reads for step in steps))
    transitions = []
    for step in steps:
        source = states.setdefault(step.source, len(states))
        target = states.setdefault(step.target, len(states))
        guard = guards.setdefault(step.guard, len(guards) - 1)
        label = labels.setdefault(step.labels, len(labels))
        transitions.append(Transition(source, guard, label, target, step.writes & read, step.clears & read))
    last = states.setdefault(final, len(states))
    conditions = tuple(guard for guard in guards if guard is not ANY and guard != ANY)
    return Automaton(len(states), 0, frozenset((last,)), tuple(dict.fromkeys(transitions)), conditions, tuple(labels))


def _unsupported(node: Pattern, what: str, advice: str) -> PatternError:
    return PatternError(f"the engine does not run {what} yet", span=node.span, hint=advice)
