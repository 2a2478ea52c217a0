"""NOT at the ends of a pattern, in the form that the engine decides: one window around it, and no condition after it.

A window, a name, a filter and a projection leave a match's start and end as they are, and an absence binds nothing. So
they may change places: a second window, or a condition on the whole, may as well be on the part that occurs.

Invariant: the matches are those of the pattern; `tests/properties/test_absences.py` compares them with the judge's.
"""

from __future__ import annotations

from dataclasses import replace

from cerite.core.errors import PatternError
from cerite.core.names import quoted
from cerite.pattern import nodes
from cerite.pattern.absences import absences, waiting_parts
from cerite.pattern.variables import nullable
from cerite.predicate.expression import aggregates, variables


def one_window(pattern: nodes.Pattern, within: nodes.Size | None) -> tuple[nodes.Pattern, nodes.Size | None]:
    """A pattern with its absences directly inside one window, and that window; unchanged without windows of its own.

    Of the windows around an absence, the innermost is the one in which it holds; the others limit only the match.

    >>> from cerite.language.ceql import parse_pattern
    >>> rewritten, size = one_window(parse_pattern("(A ; NOT B WITHIN 9 EVENTS) AS x"), nodes.Size.events(4))
    >>> print(rewritten, "|", size)
    ((A WITHIN 4 EVENTS) ; NOT B) AS x | 9 EVENTS
    """
    core, sizes = _outward(pattern)
    if not sizes or next(absences(core), None) is None:
        return pattern, within
    *around, size = ([] if within is None else [within]) + sizes
    for other in around:
        if other.measure != size.measure or other.width < size.width:
            core = _bounded(core, other)
    return core, size


def _outward(pattern: nodes.Pattern) -> tuple[nodes.Pattern, list[nodes.Size]]:
    """A pattern without the windows around its absences, and these windows, the innermost last."""
    if isinstance(pattern, nodes.Window):
        core, sizes = _outward(pattern.operand)
        return core, [pattern.size, *sizes]
    if isinstance(pattern, (nodes.Filter, nodes.Having, nodes.Named, nodes.Project)):
        core, sizes = _outward(pattern.operand)
        return (replace(pattern, operand=core), sizes) if sizes else (pattern, [])
    if isinstance(pattern, nodes.Union):
        sides = [_outward(part) for part in pattern.parts]
        if all(sizes == sides[0][1] for _, sizes in sides):
            return replace(pattern, parts=tuple(core for core, _ in sides)), sides[0][1]
    return pattern, []


def _bounded(node: nodes.Pattern, size: nodes.Size) -> nodes.Pattern:
    """The pattern, where what occurs also fits into this window."""
    if isinstance(node, nodes.Sequence) and (node.before or node.after):
        occurs = nodes.Window(replace(node, before=(), after=()), size)
        return nodes.Sequence((occurs,), (), node.before, node.after, span=node.span)
    if isinstance(node, nodes.Union):
        return replace(node, parts=tuple(_bounded(part, size) for part in node.parts))
    if isinstance(node, (nodes.Filter, nodes.Having, nodes.Named, nodes.Project)):
        return replace(node, operand=_bounded(node.operand, size))
    return nodes.Window(node, size)


# Parts that are decided when windows of their own are over: `(φ ; NOT ν WITHIN ε) ; χ`.


def kept_open(pattern: nodes.Pattern, within: nodes.Size | None) -> tuple[nodes.Pattern, nodes.Size | None]:
    """A pattern with such parts, and a window around it that lasts as long as they may be undecided.

    Where such parts begin the match and `within` is at least as long as their windows, that is `within` itself.
    Otherwise a longer window takes its place, and `within` becomes a window around a part.

    >>> from cerite.language.ceql import parse_pattern
    >>> pattern, size = kept_open(parse_pattern("C ; (A ; NOT B WITHIN 5 EVENTS)"), nodes.Size.events(4))
    >>> print(pattern, "|", size)
    (C ; (A ; NOT B WITHIN 5 EVENTS) WITHIN 4 EVENTS) | 14 EVENTS
    """
    parts = waiting_parts(pattern)
    if not parts:
        return pattern, within
    late = any(each.after for each in absences(pattern))
    sizes = [*(part.size for part in parts), *([within] if late and within is not None else ())]
    size = max(sizes, key=lambda each: each.width)
    for other in sizes:
        if other.measure != size.measure or (other.width != size.width and size.attribute is not None):
            raise PatternError(
                "the engine runs several NOTs at ends of parts in windows of time, of events, or of one width over an "
                f"attribute, not of {size} and {other}", span=other.span or parts[-1].span,
                hint="give all of them windows of time",
            )  # fmt: skip
    if within is None and size.attribute is not None:
        raise PatternError(
            f"the engine runs NOT at the end of a part in a window of {size} only inside a window over the same "
            "attribute, which then orders the events", span=parts[0].span,
            hint=f"give the query one, too: `WITHIN 100 [{quoted(size.attribute)}]`",
        )  # fmt: skip
    if within is None:
        return pattern, None
    if within.measure != size.measure:
        raise PatternError(
            f"NOT at the end of a part in a window of {size} inside one of {within} is not supported",
            span=parts[0].span, hint="measure both windows by time, by events, or over the same attribute",
        )  # fmt: skip
    if not late and size.width <= within.width and _begins(pattern):
        return pattern, within
    amount = within.width + 2 * size.width  # twice, to allow for what floats round away
    longer = nodes.Size.events(int(amount)) if size.unit == "events" else nodes.Size(amount, "milliseconds")
    if size.attribute is not None:
        longer = nodes.Size.of(size.attribute, amount)
    return nodes.Window(pattern, within, span=pattern.span), longer


def _begins(node: nodes.Pattern) -> bool:
    """Whether every part that is decided later begins where the pattern does."""
    if not waiting_parts(node):
        return True
    if isinstance(node, (nodes.Window, nodes.Named, nodes.Filter, nodes.Having, nodes.Project, nodes.Select)):
        return _begins(node.operand)
    if isinstance(node, (nodes.Union, nodes.Intersection)):
        return all(map(_begins, node.parts))
    if isinstance(node, (nodes.Sequence, nodes.Concat)):
        first, *rest = node.parts
        return _begins(first) and not nullable(first) and not any(map(waiting_parts, rest))
    return False


def condition_before_absence(node: nodes.Pattern) -> nodes.Pattern:
    """A condition on the whole, moved to what occurs and before what is absent: both only leave matches out."""
    if not isinstance(node, nodes.Having) or next(absences(node), None) is None:
        return node
    operand = node.operand
    if isinstance(operand, nodes.Union):
        return replace(
            operand, parts=tuple(condition_before_absence(replace(node, operand=part)) for part in operand.parts)
        )
    hidden = isinstance(operand, nodes.Project) and (
        _counts_all(node) or not _reads(node) <= frozenset(operand.variables)
    )
    if isinstance(operand, (nodes.Filter, nodes.Project)) and not hidden:
        return replace(operand, operand=condition_before_absence(replace(node, operand=operand.operand)))
    if isinstance(operand, nodes.Named) and (named := _named_before(operand)) is not None:
        return condition_before_absence(replace(node, operand=named))
    if isinstance(operand, nodes.Sequence):
        occurs = replace(node, operand=replace(operand, before=(), after=()))
        return nodes.Sequence((occurs,), (), operand.before, operand.after, span=operand.span)
    raise PatternError(
        "a condition on a whole pattern that names what a projection leaves of a NOT at an end is not supported",
        span=node.span, hint="put the condition on what occurs: `(φ FILTER COUNT(y) >= 5) ; NOT ν`",
    )  # fmt: skip


def _named_before(node: nodes.Named) -> nodes.Pattern | None:
    """`(φ ; NOT ν) AS x` as `(φ AS x) ; NOT ν`: what is absent has no events to name; None where that may differ."""
    inside = node.operand
    if isinstance(inside, nodes.Sequence) and (inside.before or inside.after):
        if any(node.variable in variables(each) for part in inside.negated for each in nodes.conditions_of(part)):
            return None
        occurs = replace(node, operand=replace(inside, before=(), after=()))
        return nodes.Sequence((occurs,), (), inside.before, inside.after, span=inside.span)
    if isinstance(inside, nodes.Union):
        parts = [_named_before(replace(node, operand=part)) for part in inside.parts]
        return None if None in parts else replace(inside, parts=tuple(part for part in parts if part is not None))
    if isinstance(inside, nodes.Named):
        first = _named_before(inside)
        return None if first is None else _named_before(replace(node, operand=first))
    return None if next(absences(inside), None) is not None else node


def _reads(node: nodes.Having) -> frozenset[str]:
    return frozenset().union(*map(variables, node.conditions))


def _counts_all(node: nodes.Having) -> bool:
    """Whether the condition counts all events that the pattern shows, which a projection changes."""
    return any(each.variable is None for condition in node.conditions for each in aggregates(condition))
