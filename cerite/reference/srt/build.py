"""SREMO → SRT (SRT report, theorem 27, appendix A.2), with the operators of section 5: & ! [1..w] ⟲ @.

Compositional: each operator is the construction of its own module. All parts have the registers that the whole
expression stores to or reads, R_top; a marked event is also stored under its type's name if some condition reads that.

The complement of an expression that reads what it stores needs an end (theorem 35): its own window, or being between
two marked events inside a window, which then bounds the stretch between them. `_Place` knows which windows do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from cerite.core.errors import CeriteError, PatternError
from cerite.pattern import nodes
from cerite.pattern.nodes import Pattern, walk
from cerite.pattern.rewrite.skips import expand_skips
from cerite.predicate.expression import variables
from cerite.reference.srt.by_minterms import complement
from cerite.reference.srt.constructions import concat, empty, nothing, product, star, terminal, union, windowed
from cerite.reference.srt.epsilon import eliminate_epsilon
from cerite.reference.srt.explore import MOST, too_large
from cerite.reference.srt.transducer import Registers, Transducer
from cerite.reference.srt.transition_conditions import Condition
from cerite.reference.srt.unroll import longest_run, unroll


@dataclass(frozen=True, slots=True)
class _Bound:
    """A window around the place: whether an event inside it is surely marked before, and after, the place."""

    width: int
    before: bool = False
    after: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the expression a part stands."""

    registers: Registers
    windows: tuple[_Bound, ...] = ()
    longest: int | None = None  # the stretch around a complement is no longer than this

    def between(self, before: bool, after: bool) -> _Place:
        """The place of a part with marked events before or after it."""
        windows = tuple(_Bound(each.width, each.before or before, each.after or after) for each in self.windows)
        return _Place(self.registers, windows, self.longest)

    def inside(self, width: int) -> _Place:
        """The place inside one more window."""
        return _Place(self.registers, (*self.windows, _Bound(width)), self.longest)

    def negated(self) -> _Place:
        """The place inside a complement: marks in there are not marks of what is around."""
        return _Place(self.registers, (), self.bound)

    @property
    def bound(self) -> int | None:
        """The most events that what stands here can read, if that is known."""
        known = [max(each.width - 2, 0) for each in self.windows if each.before and each.after]
        return min([*known, *([] if self.longest is None else [self.longest])], default=None)


def build(pattern: Pattern) -> Transducer:
    """The transducer of a SREMO, with ε-transitions as the report draws it.

    >>> from cerite.language.sremo import parse_sremo
    >>> figure_1 = build(parse_sremo("BUY^o>r1 . (true^x)* . SELL[id = r1.id]^o"))
    >>> print(eliminate_epsilon(figure_1))
    state         reads             marks  goes to
    ------------  ----------------  -----  -------
    q0     start  BUY               • ↓r1  q1
    q1            TRUE              ∘      q1
                  SELL[id = r1.id]  •      q2
    q2     final  -                 -      -
    """
    expression = expand_skips(pattern)
    return _build(expression, _Place(_registers(expression)))


def _build(node: Pattern, place: _Place) -> Transducer:
    match node:
        case nodes.Empty():
            return empty()
        case nodes.Nothing():
            return nothing()
        case nodes.Event(type=kind, condition=condition, output=output):
            return terminal(Condition.of(kind, condition), output=output, writes=node.writes & place.registers)
        case nodes.Union(parts=parts):
            return union(*(_build(part, place) for part in parts))
        case nodes.Concat(parts=parts):
            return concat(*(_build(part, _between(parts, index, place)) for index, part in enumerate(parts)))
        case nodes.Intersection(parts=parts):
            sides = [_with_registers(_build(part, place), place.registers) for part in parts]
            return _placed(lambda: reduce(product, sides), node)
        case nodes.Iteration(contiguous=True):
            return _iteration(node, place)
        case nodes.Window(operand=operand, size=size) if size.unit == "events":
            inside = _build(operand, place.inside(int(size.amount)))
            return _placed(lambda: windowed(eliminate_epsilon(inside), int(size.amount)), node)
        case nodes.Complement(operand=operand):
            return _complement(node, _with_registers(_build(operand, place.negated()), place.registers), place)
    raise PatternError(
        f"`{node}` is not a SREMO", span=node.span, hint=_ADVICE.get(type(node), "write it with SREMO's operators")
    )


_ADVICE: dict[type[Pattern], str] = {
    nodes.Sequence: "write #(e, f) for a sequence with gaps, @(e, f) if no f may lie in them",
    nodes.Iteration: "write #(e*) for an iteration with gaps",
    nodes.Permute: "write the orders as a union: #(e, f) + #(f, e)",
    nodes.Named: "store the event under the name: A^o>x",
    nodes.Filter: "write the condition on the event itself: A[price > 3]^o",
    nodes.Project: "mark only the events to be kept: ^o for these, ^x for the others",
    nodes.Select: "write ⟲ or @ where the pattern skips: #(e, f), @(e, f)",
    nodes.Window: "count events: (…)[1..w]; or store the first event and compare with the last: [at - r.at <= 30]",
}


def _registers(pattern: Pattern) -> Registers:
    """reg(e): what is stored to by name, or read."""
    names: set[str] = set()
    for node in walk(pattern):
        if isinstance(node, nodes.Event):
            names |= frozenset() if node.condition is None else variables(node.condition)
            names |= frozenset() if node.register is None else {node.register}
    return frozenset(names)


def _with_registers(transducer: Transducer, registers: Registers) -> Transducer:
    """The same transducer knowing all registers of the whole expression, so that new names differ from them."""
    return replace(transducer, registers=transducer.registers | registers)


def _between(parts: tuple[Pattern, ...], index: int, place: _Place) -> _Place:
    return place.between(any(map(_marks, parts[:index])), any(map(_marks, parts[index + 1 :])))


def _marks(pattern: Pattern) -> bool:
    """Whether every match of the pattern marks an event."""
    match pattern:
        case nodes.Event(output=output):
            return output
        case nodes.Union(parts=parts):
            return all(map(_marks, parts))
        case nodes.Concat(parts=parts) | nodes.Intersection(parts=parts):
            return any(map(_marks, parts))
        case nodes.Iteration(operand=operand, least=least):
            return least > 0 and _marks(operand)
        case nodes.Window(operand=operand):
            return _marks(operand)
    return False


def _iteration(node: nodes.Iteration, place: _Place) -> Transducer:
    """e{n,m}: n copies, then any number, or m - n copies that may be left out."""
    once = _build(node.operand, place)
    optional = 1 if node.most is None else node.most - node.least
    if (node.least + optional) * len(once.transitions) > MOST:
        raise too_large("the iteration", MOST)
    rest = star(once) if node.most is None else union(empty(), once)
    return concat(*(once,) * node.least, *(rest,) * optional)


def _complement(node: nodes.Complement, operand: Transducer, place: _Place) -> Transducer:
    def construct() -> Transducer:
        plain = eliminate_epsilon(operand).trim()
        # What is longer than the bound is outside a window, whatever the complement says of it.
        ends = [end for end in (longest_run(plain), place.bound) if end is not None]
        if plain.read & plain.written and ends:
            plain = unroll(plain, min(ends))  # also so that it writes copies, not the registers of what is around
        return complement(plain)

    return _placed(construct, node)


def _placed(build: Callable[[], Transducer], node: Pattern) -> Transducer:
    """What is built, or its error pointing at the node."""
    try:
        return build()
    except CeriteError as error:
        error.span = error.span or node.span
        raise
