"""Absence: NOT at an end of a windowed pattern (docs/semantics.md, *Absence*), and where it may stand.

The window of `φ ; NOT ν` and of `NOT ν ; φ` is the innermost one around it: an operator, or the query's WITHIN. Between
the two there may be filters, names, projections and alternatives, which leave a match's start and end as they are;
anything else would have to say what the match of a larger pattern is while a part of it is undecided.

Invariant: every absence that `check_absences` lets through has a window, and either all alternatives of an OR end in an
absence or none does, so that a match has one moment at which it is decided.
"""

from __future__ import annotations

from collections.abc import Iterator

from cerite.core.errors import PatternError
from cerite.pattern import nodes
from cerite.pattern.query import QuerySpec

_THROUGH = (
    nodes.Filter,
    nodes.Having,
    nodes.Named,
    nodes.Project,
    nodes.Union,
)  # what may stand between an absence and its window


def has_absence(pattern: nodes.Pattern) -> bool:
    """Whether something is negated at an end of some part, anywhere in the pattern.

    >>> from cerite.language.ceql import parse_pattern
    >>> has_absence(parse_pattern("A ; NOT B ; C")), has_absence(parse_pattern("(A ; NOT B WITHIN 5 seconds) ; C"))
    (False, True)
    """
    return any(isinstance(node, nodes.Sequence) and bool(node.before or node.after) for node in nodes.walk(pattern))


def absences(pattern: nodes.Pattern) -> Iterator[nodes.Sequence]:
    """The sequences with an absence whose window is the one directly around `pattern`."""
    if isinstance(pattern, nodes.Sequence) and (pattern.before or pattern.after):
        yield pattern
    elif isinstance(pattern, _THROUGH):
        for part in pattern.children:
            yield from absences(part)


def ends_in_absence(pattern: nodes.Pattern) -> bool:
    """Whether some match of the pattern is decided only when a window is over, with nothing after it."""
    if isinstance(pattern, nodes.Sequence):
        return bool(pattern.after) or ends_in_absence(pattern.parts[-1])
    return isinstance(pattern, (*_THROUGH, nodes.Window, nodes.Select)) and any(map(ends_in_absence, pattern.children))


def waiting_parts(pattern: nodes.Pattern) -> tuple[nodes.Window, ...]:
    """The parts with a window of their own that are decided only when that window is over.

    >>> from cerite.language.ceql import parse_pattern
    >>> [str(part) for part in waiting_parts(parse_pattern("C ; (A ; NOT B WITHIN 5 seconds) ; (NOT D ; E)"))]
    ['(A ; NOT B WITHIN 5 seconds)']
    """
    return tuple(
        node
        for node in nodes.walk(pattern)
        if isinstance(node, nodes.Window) and any(each.after for each in absences(node.operand))
    )


def deciding(pattern: nodes.Pattern, window: nodes.Size | None) -> Iterator[nodes.Size]:
    """The windows whose ends may decide a match of the pattern; `window` is the one around it.

    >>> from cerite.language.ceql import parse_pattern
    >>> pattern = parse_pattern("(A ; NOT B WITHIN 5 seconds) ; C ; NOT D")
    >>> [str(each) for each in deciding(pattern, nodes.Size.events(9))]
    ['9 EVENTS', '5 seconds']
    """
    if isinstance(pattern, nodes.Window):
        window = pattern.size
    if isinstance(pattern, nodes.Sequence) and pattern.after and window is not None:
        yield window
    for part in pattern.parts if isinstance(pattern, nodes.Sequence) else pattern.children:
        yield from deciding(part, window)


def check_absences(query: QuerySpec) -> None:
    """Refuse an absence without a window, under a strategy, or where the match around it is not clear."""
    if query.strategy is not None and ends_in_absence(query.where):
        raise _under_strategy(query.strategy, query.where)
    _check(query.where, query.within)
    for size in deciding(query.where, query.within) if query.suppress is not None else ():
        if not size.is_time:
            raise PatternError(
                "SUPPRESS counts time from when a match is known, here at the end of a NOT's window, and a window of "
                f"{size} does not end at a time", span=query.clauses.get("suppress"),
                hint="give the NOT a window of time: `WITHIN 30 seconds`",
            )  # fmt: skip


def _check(node: nodes.Pattern, window: nodes.Size | None) -> None:
    """Check a node; `window` is the window of absences directly inside it."""
    if isinstance(node, nodes.Select) and ends_in_absence(node.operand):
        raise _under_strategy(node.strategy, node)
    if isinstance(node, nodes.Union) and len({ends_in_absence(part) for part in node.parts}) > 1:
        raise PatternError(
            "one side of OR ends in NOT and the other does not: the one is decided later than the other",
            span=node.span,
            hint="write two queries, or NOT at the end of both sides: after `;`, not in a part that comes after `:`",
        )  # fmt: skip
    if isinstance(node, nodes.Window):
        window = node.size
    for each in node.children:
        _check(each, window)
    if isinstance(node, nodes.Sequence) and (node.before or node.after) and window is None:
        negated = (node.after or node.before)[0]
        raise PatternError(
            f"NOT at the {'end' if node.after else 'start'} of a pattern needs a window: for how long is it absent?",
            span=negated.span,
            hint=f"add one: `{node} WITHIN 30 seconds`" if len(str(node)) < 60 else "add `WITHIN 30 seconds`",
        )  # fmt: skip
    inside = node.children if not isinstance(node, (nodes.Window, *_THROUGH)) else ()
    for part in inside:
        for hidden in absences(part):
            raise _hidden(node, hidden)


def _under_strategy(strategy: nodes.Strategy, node: nodes.Pattern) -> PatternError:
    return PatternError(
        f"{strategy.value} compares the matches that end at one event, and this pattern ends in NOT: its matches are "
        "decided later, when their windows are over", span=node.span,
        hint=f"apply the strategy before NOT: `{strategy.value}(φ) ; NOT ν`",
    )  # fmt: skip


def _hidden(around: nodes.Pattern, inside: nodes.Sequence) -> PatternError:
    negated = (inside.after or inside.before)[0]
    if isinstance(around, nodes.Sequence) and inside in around.parts:
        at = around.parts.index(inside)
        if (inside.after and at == len(around.parts) - 1) or (inside.before and at == 0):
            return PatternError(
                "this NOT is inside parentheses and its window outside", span=negated.span,
                hint="leave the parentheses out, or put the window inside them: `(… ; NOT B WITHIN 30 seconds)`",
            )  # fmt: skip
    return PatternError(
        "NOT at an end of a part needs the part's own window", span=negated.span,
        hint="write it inside the parentheses: `(A ; NOT B WITHIN 30 seconds) ; C`; between two NOT needs none: "
        "`A ; NOT B ; C`",
    )  # fmt: skip
