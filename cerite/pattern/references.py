"""References between variables: which event `x.price` reads (docs/semantics.md, *References*).

A reference normally looks back: it reads the event most recently bound to the variable. Where the variable is bound
only later, the condition waits for it, so that `x[id = z.id]` and `z[id = x.id]` mean the same (ICDT's FILTER
P(x, z)). `resolve` decides which is which, scope by scope from the inside out, marks what looks ahead (`later`) and
moves such filters to the scope that binds both; what would be ambiguous is refused with advice.

A name is looked up in the filtered pattern first, then in what encloses it; one that can only be the very event being
checked is refused (its own name is the exception: `b[price > b.price]` reads the previous b). What is negated at the
start of a sequence may read events of the sequence, which come later; such a condition stays where it is, whether it is
a filter or written on the event itself.

`orient_references` rewrites a resolved pattern so that every reference looks back: a condition moves to the last event
that it reads, and every name of that event then means the event itself. A condition on an event (`B[id = r.id]`,
SREMO's terminal) only ever looks back: a register must hold something when it is read (definition 13). Aggregates only
ever look back, too, and one that has nothing to range over is refused; those of `Having` range over what it filters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from operator import is_

from cerite.core.errors import PatternError, listed, suggestion
from cerite.core.names import quoted
from cerite.pattern import nodes
from cerite.pattern.nodes import ANY_TYPE, Pattern, transform
from cerite.pattern.rewrite.orders import expand_permute
from cerite.pattern.variables import (
    Chain,
    bound,
    counts,
    may_coincide,
    may_precede,
    same_event,
    surely_precedes,
    visible,
    written,
)
from cerite.predicate import expression as ex
from cerite.predicate.expression import transform as change_condition
from cerite.predicate.expression import walk as walk_condition

_NONE: frozenset[str] = frozenset()
NEGATED, FIRST = "a negated pattern", "a pattern negated at the start"


@dataclass(frozen=True, slots=True)
class _Frame:
    """One enclosing scope: what it binds before and after the current place, and whether a filter may leave it."""

    before: frozenset[str] = _NONE
    after: frozenset[str] = _NONE
    wall: str = ""  # why a forward reference cannot be waited for beyond this scope
    beside: frozenset[str] = _NONE  # bound on the other side of an AND: neither before nor after
    once: frozenset[str] = _NONE  # of what a pattern negated at the start sees after it, exactly one event


def resolve(pattern: Pattern, *, strict: bool = False) -> Pattern:
    """The pattern with every forward reference marked `later`, on a filter that encloses both variables.

    PERMUTE is written out, because the order of its parts decides which way a reference looks. With `strict`, a
    terminal that reads a register nothing has written is refused; otherwise its condition is just never true.

    >>> from cerite.language.ceql import parse_pattern
    >>> print(resolve(parse_pattern("(A AS x FILTER x[id = z.id]) ; B AS z")))
    A AS x ; B AS z FILTER x[id = z.id]
    """
    resolved, waiting = _resolve(expand_permute(pattern), (), strict)
    assert not waiting, "every reference is resolved or refused"
    return resolved


def orient_references(pattern: Pattern) -> Pattern:
    """The pattern with every condition on the last of its variables, so that it only looks back.

    >>> from cerite.language.ceql import parse_pattern
    >>> print(orient_references(parse_pattern("(A AS x ; B AS z) FILTER x[id = z.id AND price > 3]")))
    A AS x ; B AS z FILTER z[x.id = id AND x.price > 3]
    >>> print(orient_references(parse_pattern("(A AS x ; B AS z) FILTER x[id = z.id AND id > B.id]")))
    A AS x ; B AS z FILTER B[x.id = id AND x.id > id]
    """

    def change(node: Pattern) -> Pattern:
        if not isinstance(node, nodes.Filter):
            return node
        return replace(node, conditions=tuple(_turned(each, node.operand) for each in node.conditions))

    return transform(resolve(pattern), change)


def read_later(pattern: Pattern) -> frozenset[str]:
    """What a resolved pattern, negated at the start of a sequence, reads of the sequence's events.

    >>> from cerite.language.ceql import parse_pattern
    >>> whole = resolve(parse_pattern("(NOT B[id = x.id] ; A AS x WITHIN 5 seconds)"))
    >>> sorted(read_later(whole.operand.before[0]))
    ['x']
    """
    read = (each for condition in nodes.conditions_of(pattern) for each in ex.references(condition))
    return frozenset(each.variable for each in read if each.later) - written(pattern)


def _turned(on: nodes.On, scope: Pattern) -> nodes.On:
    ahead = {each.variable for each in ex.references(on.condition) if each.later}
    if not ahead or not ahead <= written(scope):  # or it waits for events after a pattern negated at the start
        return on
    last = next(each for each in sorted(ahead) if not any(may_precede(scope, each, other) for other in ahead - {each}))

    def change(node: ex.Expression) -> ex.Expression:
        if isinstance(node, ex.Attribute):
            return ex.Reference(on.variable, node.name, span=node.span)
        if isinstance(node, ex.Reference):
            own = node.later and (node.variable == last or same_event(scope, node.variable, last))
            return ex.Attribute(node.name, span=node.span) if own else replace(node, later=False)
        return node

    return nodes.On(last, change_condition(on.condition, change), span=on.span)


Waiting = list[nodes.On]  # conditions on their way out to the scope that binds what they wait for


def _resolve(node: Pattern, frames: tuple[_Frame, ...], strict: bool) -> tuple[Pattern, Waiting]:
    if isinstance(node, nodes.Event):
        if strict:
            _check_event(node, frames)
        return _awaiting(node, frames), []
    waiting: Waiting = []

    def inside(child: Pattern, frame: _Frame | None) -> Pattern:
        resolved, more = _resolve(child, frames if frame is None else (frame, *frames), strict)
        waiting.extend(more)
        return resolved

    if isinstance(node, nodes.Filter):
        apart = _apart(node)
        if apart is not node:
            return _resolve(apart, frames, strict)
        operand = inside(node.operand, None)
        conditions: list[nodes.On] = []
        for on in node.conditions:
            marked, outer = _mark(on, node.operand, frames)
            (waiting if outer else conditions).append(marked)
        return (replace(node, operand=operand, conditions=tuple(conditions)) if conditions else operand), waiting
    if isinstance(node, nodes.Having):
        _check_whole(node, frames)
    result = _map_with_frames(node, inside)
    if isinstance(node, Chain):
        result, waiting = _settle(result, waiting)
    return result, waiting


def _apart(node: nodes.Filter) -> Pattern:
    """The pattern with conditions whose variables come in different orders moved into the alternatives."""
    for on in node.conditions:
        if any(_order_varies(node.operand, each, on) for each in _referenced(on)):
            rest = tuple(other for other in node.conditions if other is not on)
            moved = _moved(node.operand, on)
            return replace(node, operand=moved, conditions=rest) if rest else moved
    return node


def _referenced(on: nodes.On) -> frozenset[str]:
    """The variables of which a single event is read; aggregates take what came before, whatever that is."""
    return frozenset(each.variable for each in ex.references(on.condition))


def _order_varies(operand: Pattern, read: str, on: nodes.On) -> bool:
    """Whether the variable read comes before the checked one in some match, and only after it in another."""
    if read == on.variable or surely_precedes(operand, read, on.variable):
        return False
    return may_precede(operand, read, on.variable) and may_precede(operand, on.variable, read, again=False)


def _moved(node: Pattern, on: nodes.On) -> Pattern:
    names = _referenced(on) | {on.variable}
    if not any(_order_varies(node, each, on) for each in _referenced(on)):
        missing = [each for each in _referenced(on) if each not in written(node)]
        if on.variable not in bound(node):
            return node  # the filter says nothing here
        return nodes.Nothing() if missing else nodes.Filter(node, (on,), span=on.span)
    match node:
        case nodes.Union():
            return node.map(lambda part: _moved(part, on))
        case nodes.Filter() | nodes.Having() | nodes.Window():
            return replace(node, operand=_moved(node.operand, on))
        case nodes.Named(operand=operand, variable=variable) if variable not in names:
            return replace(node, operand=_moved(operand, on))
        case nodes.Sequence(parts=parts) | nodes.Concat(parts=parts):
            concerned = [index for index, part in enumerate(parts) if written(part) & names]
            if len(concerned) == 1:
                at = concerned[0]
                return replace(node, parts=(*parts[:at], _moved(parts[at], on), *parts[at + 1 :]))
    raise PatternError(
        f"the condition on `{on.variable}` reads a variable that comes before it in one case and after it in another",
        span=on.span, hint="write the filter inside each alternative, where the order is clear",
    )  # fmt: skip


def _map_with_frames(node: Pattern, inside: Callable[[Pattern, _Frame | None], Pattern]) -> Pattern:
    match node:
        case nodes.Sequence(parts=parts):
            frames = _frames(parts)
            every = _Frame(before=_writes(parts))
            gaps = (node.before, *node.absent, node.after)
            new_parts = tuple(map(inside, parts, frames))
            before, *absent, after = (
                tuple(inside(each, _negated_frame(around, first=index == 0, parts=parts)) for each in gap)
                for index, (gap, around) in enumerate(zip(gaps, (*frames, every), strict=True))
            )
            if all(map(is_, (*new_parts, *chain(*absent), *before, *after), node.children)):
                return node
            return replace(node, parts=new_parts, absent=tuple(absent), before=before, after=after)
        case nodes.Iteration(operand=operand, most=most):
            again = written(operand) if most is None or most > 1 else _NONE
            return node.map(lambda part: inside(part, _Frame(before=again, wall="an iteration")))
        case nodes.Intersection(parts=parts):
            beside = (_writes(parts[:i] + parts[i + 1 :]) for i in range(len(parts)))
            return node.map(lambda part: inside(part, _Frame(beside=next(beside), wall="one side of AND")))
        case nodes.Union():
            return node.map(lambda part: inside(part, _Frame(wall="one branch of OR")))
        case nodes.Select(strategy=strategy):
            return node.map(lambda part: inside(part, _Frame(wall=f"{strategy.value}(…)")))
        case nodes.Complement() | nodes.Project():
            return node.map(lambda part: inside(part, _Frame(wall=f"{type(node).__name__.upper()}(…)")))
        case _ if isinstance(node, Chain):
            around = iter(_frames(visible(node)))
            return node.map(lambda part: inside(part, next(around)))
        case _:
            return node.map(lambda part: inside(part, None))


def _negated_frame(around: _Frame, *, first: bool, parts: tuple[Pattern, ...]) -> _Frame:
    """What a negated pattern sees: all that is bound before it; at the start of a sequence also what comes after it."""
    if not first:
        return _Frame(before=around.before, wall=NEGATED)
    after, whole = _writes(parts), nodes.Sequence(parts)
    once = frozenset(name for name in after if counts(whole, name) == (1, 1))
    return _Frame(before=around.before, after=after, wall=FIRST, once=once)


def _frames(parts: tuple[Pattern, ...]) -> list[_Frame]:
    """For every part, what the parts before it and after it write."""
    own = [written(part) for part in parts]
    before = accumulate(own[:-1], frozenset.union, initial=_NONE)
    after = list(accumulate(own[:0:-1], frozenset.union, initial=_NONE))
    return [_Frame(before=earlier, after=later) for earlier, later in zip(before, reversed(after), strict=True)]


def _writes(parts: tuple[Pattern, ...]) -> frozenset[str]:
    return _NONE.union(*map(written, parts))


def _check_event(event: nodes.Event, frames: tuple[_Frame, ...]) -> None:
    """Refuse a terminal that reads registers that nothing before it has written."""
    own = nodes.On(ANY_TYPE if event.type is None else event.type, event.condition or ex.TRUE)
    for each in ex.aggregates(own.condition):
        _check_range(each, own, nodes.Empty(), frames)
    for reference in ex.references(own.condition):
        if not reference.later and not _looks_back(reference, own, frames) and not _awaited(reference, frames):
            raise PatternError(
                f"`{reference.variable}` holds nothing yet when `{own.variable}` is read", span=reference.span,
                hint=f"write the condition on the later event, or as a filter: `… FILTER {own.variable}[…]`",
            )  # fmt: skip


def _awaiting(event: nodes.Event, frames: tuple[_Frame, ...]) -> nodes.Event:
    """The event with its references marked that read events after a pattern negated at the start."""

    def change(node: ex.Expression) -> ex.Expression:
        awaits = isinstance(node, ex.Reference) and not node.later and _awaited(node, frames)
        return replace(node, later=True) if isinstance(node, ex.Reference) and awaits else node

    changed = None if event.condition is None else change_condition(event.condition, change)
    return event if changed == event.condition else replace(event, condition=changed)


def _awaited(node: ex.Reference, frames: tuple[_Frame, ...]) -> bool:
    """Whether a variable is bound after the pattern negated at the start that reads it, and nowhere nearer."""
    for frame in frames:
        if node.variable in frame.before | frame.beside:
            return False
        if node.variable in frame.after:
            return frame.wall == FIRST
    return False


def _check_range(node: ex.Aggregate, on: nodes.On, operand: Pattern, frames: tuple[_Frame, ...]) -> None:
    """Refuse an aggregate in a condition on an event if nothing can be bound to its variable before that event."""
    if node.variable is None:
        return  # refused by name
    if may_precede(operand, node.variable, on.variable) or any(node.variable in frame.before for frame in frames):
        return
    known = written(operand).union(*(frame.before | frame.after | frame.beside for frame in frames))
    if node.variable in known:
        raise PatternError(
            f"no `{node.variable}` comes before the `{on.variable}` being checked, so `{node}` ranges over nothing",
            span=node.span, hint=f"write it on what comes after `{node.variable}`, or, about all of them, outside of "
            f"the brackets: `FILTER {node} …`",
        )  # fmt: skip
    raise PatternError(
        f"`{node.variable}` is not bound where `{on.variable}` is checked", span=node.span,
        hint=suggestion(node.variable, known) or f"bind it first: `… AS {node.variable}`",
    )  # fmt: skip


def _check_whole(node: nodes.Having, frames: tuple[_Frame, ...]) -> None:
    """Refuse a condition on a whole pattern unless it ranges over what the pattern binds, and reads that or earlier."""
    own = written(node.operand)
    whole = nodes.On("the pattern before FILTER", ex.TRUE)
    for each in (part for condition in node.conditions for part in walk_condition(condition)):
        if isinstance(each, ex.Aggregate) and each.variable is not None and each.variable not in own:
            raise PatternError(
                f"the pattern before FILTER never binds `{each.variable}`, so `{each}` ranges over nothing",
                span=each.span, hint=suggestion(each.variable, own) or f"it binds {listed(own)}",
            )  # fmt: skip
        if isinstance(each, ex.Attribute):
            raise PatternError(
                f"`{each}` is an attribute of no event here: the condition is about the whole pattern", span=each.span,
                hint=f"write `AVG(y.{each})` or another aggregate, `x.{each}` of a variable that holds one event, or "
                f"`y[{each} …]` for every event of y",
            )  # fmt: skip
        if isinstance(each, ex.Reference) and each.variable not in own and not _looks_back(each, whole, frames):
            raise PatternError(
                f"`{each.variable}` is bound only after the pattern before FILTER", span=each.span,
                hint=f"write the condition on a single event inside NOT: `y[… {each}]`" if _awaited(each, frames)
                else "put the FILTER around both, in parentheses",
            )  # fmt: skip


def _settle(scope: Pattern, waiting: Waiting) -> tuple[Pattern, Waiting]:
    here = [
        on
        for on in waiting
        if all(each.variable in written(scope) for each in ex.references(on.condition) if each.later)
    ]
    if not here:
        return scope, waiting
    for on in here:
        _check_scope(on, scope)
    return nodes.Filter(scope, tuple(here), span=scope.span), [on for on in waiting if on not in here]


def _mark(on: nodes.On, operand: Pattern, frames: tuple[_Frame, ...]) -> tuple[nodes.On, bool]:
    """The condition with forward references marked, and whether it must wait in an outer scope."""
    outer, awaits = False, False

    def change(node: ex.Expression) -> ex.Expression:
        nonlocal outer, awaits
        if isinstance(node, ex.Aggregate):
            _check_range(node, on, operand, frames)
        if not isinstance(node, ex.Reference) or node.later:
            return node
        if node.variable in written(operand) and (node.variable != on.variable or not isinstance(operand, nodes.Event)):
            if may_precede(operand, node.variable, on.variable) or _known_before(node, on, frames):
                return node
            if node.variable != on.variable and not may_precede(operand, on.variable, node.variable):
                raise _of_itself(node, on)
            return replace(node, later=True)
        if _looks_back(node, on, frames):
            return node
        if _awaited(node, frames):
            _check_awaiting(node, on, operand)
            awaits = True
        else:
            outer = True
        return replace(node, later=True)

    marked = replace(on, condition=change_condition(on.condition, change))
    if outer and awaits:
        raise PatternError(
            f"the condition on `{on.variable}` waits for events inside NOT and for events after it", span=on.span,
            hint="write two conditions, or one FILTER around all that is inside NOT",
        )  # fmt: skip
    here = [each for each in ex.references(marked.condition) if each.later and each.variable in written(operand)]
    if not outer and here:
        _check_scope(marked, operand)
    return marked, outer


def _check_awaiting(node: ex.Reference, on: nodes.On, operand: Pattern) -> None:
    """Refuse a condition that reads an event after NOT unless it is about exactly one event inside NOT."""
    if counts(operand, on.variable) != (1, 1):
        raise PatternError(
            f"NOT reads `{node.variable}`, which is bound after it, and `{on.variable}` is not always exactly one "
            "event", span=node.span, hint=f"negate a single event: `NOT B[{quoted(node.name)} = {node}]`",
        )  # fmt: skip


def _of_itself(node: ex.Reference, on: nodes.On) -> PatternError:
    """The error for `y[BUY.price > 5]` with `BUY AS y`: a reference reads an earlier event, this one only the same."""
    return PatternError(
        f"`{node}` can only be `{on.variable}` itself, and a reference reads another event", span=node.span,
        hint=f"write `{quoted(node.name)}` for this event; to read an earlier one, name that one: `… AS first`, and "
        f"write `first.{quoted(node.name)}`",
    )  # fmt: skip


def _known_before(node: ex.Reference, on: nodes.On, frames: tuple[_Frame, ...]) -> bool:
    """Whether `x[p > x.p]`, where the pattern binds x once, reads a previous x of an outer scope."""
    return node.variable == on.variable and any(node.variable in frame.before for frame in frames)


def _looks_back(node: ex.Reference, on: nodes.On, frames: tuple[_Frame, ...]) -> bool:
    walls: list[str] = []
    for frame in frames:
        if node.variable in frame.before:
            return True
        if node.variable in frame.beside:
            raise PatternError(
                f"`{node.variable}` is bound on the other side of AND", span=node.span,
                hint="put the FILTER outside the AND, where both sides are known",
            )  # fmt: skip
        if node.variable in frame.after:
            if frame.wall == FIRST and (walls or node.variable not in frame.once):
                what = f"inside {walls[0]}" if walls else f"and `{node.variable}` is not always exactly one event"
                raise PatternError(
                    f"NOT at the start of a pattern reads `{node.variable}`, which is bound only after it, {what}",
                    span=node.span,
                    hint=f"let both be in one partition: PARTITION BY [{quoted(node.name)}]; or let a single event "
                    f"read a single one: `NOT B[{quoted(node.name)} = x.{quoted(node.name)}] ; A AS x`",
                )  # fmt: skip
            if walls:
                raise PatternError(
                    f"`{node.variable}` is bound only later, outside {walls[0]} that `{on.variable}` is in",
                    span=node.span, hint=f"write the condition on the later one: `{node.variable}[… {on.variable}.… ]`",
                )  # fmt: skip
            return False
        if frame.wall:
            walls.append(frame.wall)
    known = frozenset().union(*(frame.before | frame.after for frame in frames))
    first = f"bind it first: `… AS {node.variable}`, in SREMO `…^o>{node.variable}`; "
    first += f"a nested attribute is written in back-quotes: `` `{node.variable}.{node.name}` ``"
    raise PatternError(
        f"`{node.variable}` is not bound where `{on.variable}` is checked",
        span=node.span, hint=suggestion(node.variable, known) or first,
    )  # fmt: skip


def _check_scope(on: nodes.On, scope: Pattern) -> None:
    """Refuse a forward reference unless both sides are exactly one event and nothing else is in doubt."""
    ahead = {each.variable: each for each in ex.references(on.condition) if each.later}
    for node in ex.aggregates(on.condition) if ahead else ():
        raise PatternError(
            f"`{node}` ranges over what comes before `{on.variable}`, and the condition reads `{min(ahead)}`, which "
            "comes after", span=node.span, hint=f"write the condition on the later one: `{min(ahead)}[…]`",
        )  # fmt: skip
    for variable, reference in ahead.items():
        if variable == on.variable:
            raise PatternError(
                f"`{variable}.{reference.name}` has no earlier `{variable}` to read", span=reference.span,
                hint=f"bind `{variable}` before it too, as in `A AS {variable} ; (A AS {variable} FILTER …)+`",
            )  # fmt: skip
        for each in (variable, on.variable):
            if counts(scope, each) != (1, 1):
                raise PatternError(
                    f"`{variable}` is bound only after `{on.variable}`, and `{each}` is not always exactly one event",
                    span=reference.span,
                    hint=f"write the condition on the later one: `{variable}[… {on.variable}.… ]`; where either may "
                    "come first, write both orders: `(… FILTER …) OR (… FILTER …)`",
                )  # fmt: skip
    doubtful = any(may_precede(scope, one, two) and may_precede(scope, two, one) for one in ahead for two in ahead)
    moved = any(  # when the condition is checked, the variable has another event than it had at `on`
        not each.later
        and (may_precede(scope, on.variable, each.variable) or may_coincide(scope, on.variable, each.variable))
        for each in ex.references(on.condition)
    )
    if doubtful or moved:
        raise PatternError(
            f"the condition on `{on.variable}` reads variables whose order is not clear", span=on.span,
            hint="write it on the variable that is bound last",
        )  # fmt: skip


def filtered_variable(pattern: Pattern, condition: ex.Expression) -> str | None:
    """For ICDT's spelling `y.id = x.id`: the variable that the condition is about, the one `pattern` binds last."""
    mentioned = {each.variable for each in ex.references(condition)} & bound(pattern)
    for each in sorted(mentioned):
        if not any(may_precede(pattern, each, other) for other in mentioned - {each}):
            return each
    return min(mentioned, default=None)
