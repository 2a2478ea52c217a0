"""The base of the algebra: immutable nodes that compare by structure.

CEQL, CEL, SREMO and the Python builder all become trees of these nodes; from there on there is one meaning
(`cerite.pattern.semantics`) and one compiler. A node's `span` says where in the text it stood; comparison ignores it.

Invariant: no pattern is nested deeper than `DEEPEST` or has more than `LARGEST` nodes, whoever makes it (a user, a
rewrite that doubles its operand), so that no function that follows its structure can exhaust the stack or the day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

from cerite.errors import PatternError, Span

DEEPEST = 64
LARGEST = 200_000


@dataclass(frozen=True, slots=True)
class Pattern:
    """Base of all pattern nodes."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
    depth: int = field(default=1, init=False, compare=False, repr=False)
    nodes: int = field(default=1, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        children = self.children
        depth = 1 + max((child.depth for child in children), default=0)
        nodes = 1 + sum(child.nodes for child in children)
        if depth > DEEPEST:
            raise PatternError(
                f"the pattern is nested more than {DEEPEST} levels deep", span=self.span,
                hint="write `a ; b ; c` in one line instead of one inside the other, or split the query",
            )  # fmt: skip
        if nodes > LARGEST:
            raise PatternError(
                f"the pattern, written out, has more than {LARGEST:,} parts", span=self.span,
                hint="nested PERMUTE and SKIP_NEXT multiply their parts; write fewer of them, or split the query",
            )  # fmt: skip
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "nodes", nodes)

    @property
    def children(self) -> tuple[Pattern, ...]:
        """The node's direct sub-patterns (negated ones included), in writing order."""
        return tuple(found for each in fields(self) for found in _patterns(getattr(self, each.name)))

    def map(self, change: Callable[[Pattern], Pattern]) -> Pattern:
        """The same node over changed sub-patterns."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        updates = {
            name: _mapped(value, change) for name, value in values.items() if next(_patterns(value), None) is not None
        }
        return replace(self, **updates) if updates else self

    def __str__(self) -> str:
        from cerite.pattern.printing import text

        return text(self)


def _patterns(value: Any) -> Iterator[Pattern]:
    if isinstance(value, Pattern):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _patterns(item)


def _mapped(value: Any, change: Callable[[Pattern], Pattern]) -> Any:
    if isinstance(value, Pattern):
        return change(value)
    return tuple(_mapped(item, change) for item in value) if isinstance(value, tuple) else value


def walk(pattern: Pattern) -> Iterator[Pattern]:
    """The node and all below it, parents first.

    >>> from cerite.language.ceql import parse_pattern
    >>> [type(node).__name__ for node in walk(parse_pattern("A ; B+"))]
    ['Sequence', 'Event', 'Iteration', 'Event']
    """
    stack = [pattern]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def transform(pattern: Pattern, change: Callable[[Pattern], Pattern]) -> Pattern:
    """Rebuild bottom-up, replacing each node by `change(node)`."""
    return change(pattern.map(lambda child: transform(child, change)))
