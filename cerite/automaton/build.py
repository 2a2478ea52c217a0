"""From a pattern to its automaton (CORE, theorem 1 and appendix A.1; SRT report, theorem 26), with our additions.

A pattern whose conditions each look at one event gives a valuation CEA, one that reads other variables an SRT. The
automaton is ε-free, trimmed, has one initial state that nothing enters and one final state that nothing leaves; only an
event of the match enters the final state.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cerite.automaton import announced
from cerite.automaton.absences import END, START, ending, followed, known_end, preceded
from cerite.automaton.automaton import LAST, MAX, NEXT, OTHERS, PLAIN, TRUE, Automaton, Preceding, Transition, Watcher
from cerite.automaton.fragment import (
    ENTRY,
    Fragment,
    Gap,
    Labels,
    Step,
    check_size,
    new_state,
    product,
    single,
    strict_fragment,
    union,
)  # fmt: skip
from cerite.automaton.gaps import Link, avoiding, chain, complement, iterate, repeat
from cerite.automaton.guards import ANY, Guard
from cerite.automaton.pending import Pending, waited_for
from cerite.automaton.scopes import (
    Registers,
    also_bound,
    check_scopes,
    hidden_names,
    is_repeated,
    narrowed,
    projected,
    read_unwritten,
    windowed,
    written_after,
    written_before,
)
from cerite.automaton.watchers import Watched, carried, is_stateful, marked_late, missed, selected, watched_gap
from cerite.automaton.wholes import completed, counted_before, refuse_distinct
from cerite.core.errors import PatternError
from cerite.pattern import nodes
from cerite.pattern.absences import absences
from cerite.pattern.nodes import Pattern, Size, conditions_of, transform, walk
from cerite.pattern.references import orient_references, read_later
from cerite.pattern.rewrite.absent import condition_before_absence
from cerite.pattern.rewrite.counts import bounded_counts
from cerite.pattern.rewrite.lp import lp_normal
from cerite.pattern.rewrite.skips import expand_skips
from cerite.pattern.variables import nullable, written
from cerite.predicate.expression import variables

MOST_NESTED = 4  # watched patterns one inside the other


def build(pattern: Pattern, attribute: str | None = None) -> Automaton:
    """The automaton of a pattern; `attribute` is the one by which the window around all of it is measured, if any.

    >>> from cerite.language.ceql import parse_pattern
    >>> automaton = build(parse_pattern("A AS x ; B+"))
    >>> automaton.n_states, [str(guard) for guard in automaton.conditions]
    (4, ['A', 'B'])
    """
    whole = transform(prepared(pattern), condition_before_absence)
    check_scopes(whole)
    inside = whole.operand if isinstance(whole, nodes.Select) else whole  # STRICT around everything
    builder = _Builder(whole, attribute, frozenset(map(id, absences(inside))))
    late = any(each.after for each in absences(inside))
    fragment = counted_before(builder.fragment(whole), builder.registers)
    beside = (*(each.steps for each in builder.watched), *(each.gap.steps for each in builder.pending))
    refuse_distinct(step.guard for steps in beside for step in steps)
    automaton = _automaton(fragment, builder.watched, builder.pending, late=late)
    return replace(automaton, preceding=tuple(builder.preceding))


def prepared(pattern: Pattern) -> Pattern:
    """The pattern as the construction reads it: skips are sequences, references look back, filters are on events."""
    return lp_normal(bounded_counts(transform(orient_references(pattern), _skips_as_sequences)))


def _skips_as_sequences(node: Pattern) -> Pattern:
    """⟲ and @ over parts that need an event are sequences, @ with negation in the gaps (definitions 44 and 45)."""
    if isinstance(node, (nodes.SkipAny, nodes.SkipNext)) and len(node.parts) > 1:
        if any(map(nullable, node.parts)):
            return expand_skips(node)
        gaps = tuple((part,) if isinstance(node, nodes.SkipNext) else () for part in node.parts[1:])
        return nodes.Sequence(node.parts, gaps, span=node.span)
    if (
        isinstance(node, nodes.SkipAny)
        and isinstance(node.parts[0], nodes.Iteration)
        and not nullable(node.parts[0].operand)
    ):
        return replace(node.parts[0], contiguous=False)
    return expand_skips(node) if isinstance(node, (nodes.SkipAny, nodes.SkipNext)) else node


@dataclass(frozen=True)
class _Builder:
    """Builds the fragments of the parts of one pattern."""

    whole: Pattern
    attribute: str | None = None
    outermost: frozenset[int] = frozenset()  # the sequences that have the query's window around their NOTs
    watched: list[Watched] = field(default_factory=list)
    preceding: list[Preceding] = field(default_factory=list)
    # for the sequences that have another window around their NOTs: that window, and the register of its first event
    windows: dict[int, tuple[Size, str]] = field(default_factory=dict)
    pending: list[Pending] = field(default_factory=list)  # what must not occur after parts that end in NOT
    registers: Registers = field(default_factory=Registers)
    depth: int = 0  # how many watched patterns are around this one
    around: Labels = frozenset()  # what is bound before a pattern that is followed on its own (`_preceding`)
    apart: bool = False  # whether this is such a pattern: what it does must be known at its last event

    def fragment(self, node: Pattern) -> Fragment:
        """The fragment of one part."""
        match node:
            case nodes.Event(type=kind, condition=condition, output=output):
                return single(Guard.of(kind, condition), node.labels, marks=output, writes=node.writes)
            case nodes.Empty():
                return Fragment(nullable=True)
            case nodes.Nothing():
                return Fragment()
            case nodes.Named(operand=operand, variable=variable):
                return also_bound(self.fragment(operand), variable)
            case nodes.Project(operand=operand):
                return self._projected(node, operand)
            case nodes.Union(parts=parts):
                return union(map(self.fragment, parts))
            case nodes.Intersection(parts=parts):
                return self._intersection(node, parts)
            case nodes.Concat(parts=parts):
                return chain(tuple(map(self.fragment, parts)), (Link(True),) * (len(parts) - 1))
            case nodes.Sequence(before=before, after=after) if before or after:
                return self._with_absences(node)
            case nodes.Sequence(parts=parts, absent=absent):
                return chain(tuple(map(self.fragment, parts)), tuple(map(self._link, absent)))
            case nodes.Iteration():
                return self._iteration(node)
            case nodes.Window(operand=operand, size=size):
                register = self.registers.new("window")
                self.windows.update((id(each), (size, register)) for each in absences(operand))
                return windowed(self.fragment(operand), size, register, ending=self.depth > 0)
            case nodes.Complement(operand=operand):
                if is_stateful(operand):
                    return missed(self._watched(operand, PLAIN), nullable(operand))
                return complement(self.fragment(operand))
            case nodes.Select(strategy=nodes.Strategy.STRICT, operand=operand):
                return strict_fragment(self.fragment(operand))
            case nodes.Select(strategy=strategy, operand=operand):
                return self._selected(node, strategy, operand)
            case nodes.Filter(operand=operand, conditions=conditions):
                result = self.fragment(operand)
                for on in conditions:
                    result = narrowed(result, on.variable, on.condition)
                return result
            case nodes.Having(operand=operand):
                return completed(self.fragment(operand), node, self.registers)
        raise TypeError(f"not a pattern: {node!r}")

    def _projected(self, node: nodes.Project, operand: Pattern) -> Fragment:
        first, open_before = len(self.watched), len(self.pending)
        fragment = self.fragment(operand)
        names = hidden_names(fragment, node, self.whole, self.registers)
        self.pending[open_before:] = [each.renamed(names) for each in self.pending[open_before:]]
        for number in range(first, len(self.watched)):
            self._check_repeated(node, self.watched[number], names)
            self.watched[number] = self.watched[number].renamed(names)
        return projected(fragment, frozenset(node.variables), names)

    def _check_repeated(self, node: nodes.Project, watched: Watched, names: dict[str, str]) -> None:
        """Refuse a strategy whose earlier runs read what another repetition of the projection bound and forgot."""
        hidden = sorted(watched.reads & names.keys())
        if watched.others is not None and hidden and is_repeated(self.whole, node):
            raise PatternError(
                f"a strategy reads `{hidden[0]}` from outside, inside a repeated projection that hides it",
                span=node.span, hint=f"keep `{hidden[0]}` in the projection, or bind it inside the strategy",
            )  # fmt: skip

    def _with_absences(self, node: nodes.Sequence) -> Fragment:
        """φ with NOT at its ends: as the whole pattern, where the query's window counts, or as a part."""
        size, window = (None, "") if id(node) in self.outermost else self.windows[id(node)]
        fragment = self.fragment(replace(node, before=(), after=()))
        if node.before:
            occurs = replace(node, before=(), after=())
            numbers = tuple(self._preceding(each, size, occurs) for each in node.before)
            register = None if size is None else self.registers.new("start")
            fragment = preceded(fragment, numbers, node, register)
        if node.after and size is not None:
            return self._opening(node, fragment, size, window)
        return followed(fragment, self._gap(node.after)) if node.after else fragment

    def _opening(self, node: nodes.Sequence, fragment: Fragment, size: Size, register: str) -> Fragment:
        """A part that ends in NOT: whatever completes it opens the gap, no matter what comes next."""
        if self.depth or self.apart:
            raise _unsupported(
                node, "NOT at the end of a part inside NOT, a strategy or a complement",
                "what is compared there must be known at its last event: put the part outside, or leave its NOT out",
            )  # fmt: skip
        reads = frozenset().union(*(variables(each) for negated in node.after for each in conditions_of(negated)))
        for name in sorted(reads & written_after(self.whole, node)):
            raise PatternError(
                f"NOT at the end of a part reads `{name}`, which is bound again after the part", span=node.span,
                hint="use another name after the part",
            )  # fmt: skip
        completing = [step for step in (*fragment.entries, *fragment.steps) if step.target in fragment.exits]
        if not all(step.marks for step in completing):
            raise PatternError(
                "NOT after an event that the part does not mark is not supported", span=node.span,
                hint="mark the last event: leave SKIP out",
            )  # fmt: skip
        gap = replace(self, attribute=size.attribute)._gap(node.after)
        number = frozenset((len(self.pending),))
        self.pending.append(Pending(gap, register, size))
        return replace(ending(fragment, lambda step: replace(step, opens=step.opens | number)), nullable=False)

    def _preceding(self, node: Pattern, size: Size | None, match: Pattern) -> int:
        """The number of a pattern that is absent before a match or a part; it has an automaton of its own.

        It occurs from its first event to its last, whatever it marks. What is absent before parts of it comes first.
        """
        around = self.around | written_before(self.whole, node)
        later = read_later(node)
        if later:
            node = announced.followed(node, later, match, self.registers)
        inside = _Builder(
            node, preceding=self.preceding, registers=self.registers, around=around, apart=True,
        )  # fmt: skip
        fragment = counted_before(inside.fragment(node), inside.registers)
        refuse_distinct(step.guard for each in inside.watched for step in each.steps)
        for name in sorted(read_unwritten(fragment, inside._reads) & around):
            raise _unsupported(
                node, f"NOT at the start of a part that reads `{name}` from before the part",
                "put it into the gap before the part: `A AS x ; NOT B[id = x.id] ; C`",
            )  # fmt: skip
        every = fragment.changed(lambda step: replace(step, labels=frozenset(), marks=True))
        self.preceding.append(Preceding(_automaton(every, inside.watched), size, through=bool(later)))
        return len(self.preceding) - 1

    def _gap(self, absent: tuple[Pattern, ...]) -> Gap:
        """The gap in which none of these occurs, as far as the window around can place their last events."""
        if any(map(is_stateful, absent)):
            return watched_gap(self._watched(nodes.Union(absent), PLAIN, inside=True))
        return avoiding(union(self._inside(self.fragment(each)) for each in absent))

    def _inside(self, fragment: Fragment) -> Fragment:
        return fragment if self.attribute is None else known_end(fragment, self.attribute)

    def _link(self, absent: tuple[Pattern, ...]) -> Link:
        return Link(False, absent, self._avoiding) if absent else Link(False)

    def _avoiding(self, absent: tuple[Pattern, ...]) -> Gap:
        """The gap in which none of these occurs."""
        if any(map(is_stateful, absent)):
            return watched_gap(self._watched(nodes.Union(absent), PLAIN))
        return avoiding(union(map(self.fragment, absent)))

    def _watched(self, node: Pattern, kind: int, *, inside: bool = False) -> int:
        """Watch a pattern, perhaps only where the query's window can place its last event; returns its number."""
        if self.depth == MOST_NESTED:
            raise PatternError(
                f"the engine watches at most {MOST_NESTED} stateful patterns one inside the other; there are more here",
                span=node.span, hint="negate, complement or select something simpler",
            )  # fmt: skip
        number = self._reserved(kind)
        fragment = replace(self, depth=self.depth + 1).fragment(node)
        self.watched[number] = Watched.of(kind, self._inside(fragment) if inside else fragment, self._reads)
        return number

    def _reserved(self, kind: int) -> int:
        """A number, smaller than those of what is watched inside."""
        self.watched.append(Watched(kind, new_state()))
        return len(self.watched) - 1

    def _reads(self, watcher: int) -> tuple[Labels, Labels]:
        return self.watched[watcher].reads, self.watched[watcher].gathers

    def _selected(self, node: nodes.Select, strategy: nodes.Strategy, operand: Pattern) -> Fragment:
        fragment = self.fragment(operand)
        outside = read_unwritten(fragment, self._reads) & written_before(self.whole, node)
        unclear = sorted(outside & written(operand))
        if unclear and strategy is nodes.Strategy.LAST:
            raise PatternError(
                f"LAST(…) of a part reads `{unclear[0]}`, which may be bound before the part or by it", span=node.span,
                hint=f"bind `{unclear[0]}` on every way to the condition, or use another name inside",
            )  # fmt: skip
        if any(not entry.labels or not entry.marks for entry in fragment.entries):
            raise PatternError(
                f"{strategy.value}(…) of a part that begins with an event it does not show", span=node.span,
                hint="keep the first event's variable in the projection, or mark it",
            )  # fmt: skip
        kind = {nodes.Strategy.NEXT: NEXT, nodes.Strategy.LAST: LAST, nodes.Strategy.MAX: MAX}[strategy]
        number = self._watched(operand, kind)
        if outside:
            others = self._reserved(OTHERS)
            self.watched[others] = replace(self.watched[others], entry=self.watched[number].entry)
            self.watched[number] = replace(self.watched[number], others=others)
        return selected(fragment, number, kind)

    def _intersection(self, node: Pattern, parts: tuple[Pattern, ...]) -> Fragment:
        kinds = {type(each) for each in walk(node)}
        if nodes.Project in kinds and any(isinstance(each, nodes.Event) and not each.output for each in walk(node)):
            raise _unsupported(node, "AND over both projections and unmarked events", "project after the AND")
        result = self.fragment(parts[0])
        for part in parts[1:]:
            result = product(result, self.fragment(part))
        return result

    def _iteration(self, node: nodes.Iteration) -> Fragment:
        """φ{n,m}: n copies, then repetition or further copies that may be left out."""
        link = Link(node.contiguous)
        count = max(node.least, 1) if node.most is None else node.most
        if count == 0:
            return Fragment(nullable=True)
        copies = [self.fragment(node.operand)]
        check_size(count * (len(copies[0].steps) + len(copies[0].entries)), node.span)
        copies += [self.fragment(node.operand) for _ in range(count - 1)]
        if node.most is None and any(step.opens for step in (*copies[-1].entries, *copies[-1].steps)):
            raise _unsupported(
                node, "NOT at the end of a part that is repeated without bound",
                "bound it (`{1,3}` instead of `+`), or put NOT between the repetitions",
            )  # fmt: skip
        if node.most is None:
            copies[-1] = repeat(copies[-1], link)
        return iterate(tuple(copies), node.least, link)


def _automaton(
    fragment: Fragment, watched: list[Watched], pending: list[Pending] | None = None, *, late: bool = False
) -> Automaton:
    """The automaton of a whole pattern; a `late` one has matches in its tails, once their windows are over.

    So has one with `pending` gaps, next to the final state for what is decided at its last event.
    """
    before: frozenset[int] = frozenset()
    if any(not entry.marks for entry in fragment.entries):
        fragment, before = marked_late(fragment)
    final = new_state()
    steps = fragment.entries + fragment.steps
    steps, watched = carried(steps, watched)
    ends: tuple[Step, ...] = ()
    tails = fragment.exits if late else frozenset()
    if pending:
        if any(each.kind == OTHERS for each in watched):
            raise PatternError(
                "NOT at the end of a part with a strategy that reads outside variables is not supported",
                hint="bind what the strategy reads inside it, or write two queries",
            )
        steps, tails = waited_for(steps, fragment.exits, pending)
    if late:
        steps = tuple(_stamped(step) if step.source == ENTRY or step.source in before else step for step in steps)
    else:
        ends = tuple(replace(step, target=final) for step in steps if step.target in fragment.exits and step.marks)
    every = (*steps, *ends, *(step for each in watched for step in each.completing(final)))
    possible = dict.fromkeys(step for step in every if step.guard.possible)
    waits = tuple((each.register, each.size) for each in pending or ())
    kept = frozenset(register for register, _ in waits) | ({START} if late else frozenset())
    numbering = _Numbering(possible, kept, late=bool(tails))
    return replace(numbering.automaton(final, watched, before, tails), waits=waits).trim()


def _stamped(step: Step) -> Step:
    return replace(step, writes=step.writes | {START}) if step.marks else step


class _Numbering:
    """States, guards and labels of steps by number."""

    def __init__(self, steps: dict[Step, None], kept: frozenset[str], *, late: bool) -> None:
        self._ends = late and any(END in step.writes and not step.labels for step in steps)
        read = kept.union({END} if self._ends else (), *(step.guard.reads for step in steps))
        self._states: dict[int, int] = {ENTRY: 0}
        self._guards: dict[Guard, int] = {ANY: TRUE}
        self._labels: dict[Labels, int] = {frozenset(): 0}
        self._transitions = tuple(dict.fromkeys(self._transition(step, read) for step in steps))

    def _transition(self, step: Step, read: frozenset[str]) -> Transition:
        source, target = self._state(step.source), self._state(step.target)
        guard = self._guards.setdefault(step.guard, len(self._guards) - 1)
        label = self._labels.setdefault(step.labels, len(self._labels))
        return Transition(source, guard, label, target, step.writes & read, step.clears & read, step.ops, step.shows)

    def _state(self, state: int) -> int:
        return self._states.setdefault(state, len(self._states))

    def automaton(
        self, final: int, watched: list[Watched], unmarked: frozenset[int], tails: frozenset[int]
    ) -> Automaton:
        last = self._state(final)
        watchers = tuple(Watcher(each.kind, self._state(each.entry), each.others) for each in watched)
        before, tail = (
            frozenset(number for state, number in self._states.items() if state in some) for some in (unmarked, tails)
        )
        conditions = tuple(guard for guard in self._guards if guard != ANY)
        return Automaton(
            len(self._states), 0, frozenset((last,)), self._transitions, conditions, tuple(self._labels), watchers,
            before, tail, self._ends,
        )  # fmt: skip


def _unsupported(node: Pattern, what: str, advice: str) -> PatternError:
    return PatternError(f"{what} is not supported", span=node.span, hint=advice)
