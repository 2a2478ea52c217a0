"""The columns of the picture: states by distance from the start, and between them everything an edge passes through.

Even columns hold states, odd ones the labels of edges. An edge is a chain of items in neighbouring columns: it has one
label, right next to its source, and a lane in every other column it passes. So labels and states never overlap as long
as the items of a column do not.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from cerite.automaton import Automaton
from cerite.viz.edges import Edge, edges
from cerite.viz.measure import LIFT, LINE, LOOP, PORT, RADIUS, REACH, TAB, WIDEST, text_width


class Kind(Enum):
    """What takes room in a column; a turn is the label of an edge between two states of the same column."""

    STATE = "state"
    LABEL = "label"
    TURN = "turn"
    LANE = "lane"


@dataclass(frozen=True, slots=True)
class Item:
    """Something in a column: its width, how far it reaches above and below its line, how firmly it holds its place."""

    kind: Kind
    column: int
    width: float
    above: float
    below: float
    weight: float


@dataclass(frozen=True, slots=True)
class Route:
    """An edge and the items it passes, from its source state to its target state; `label` is the one with its text."""

    edge: Edge
    stops: tuple[int, ...]
    label: int
    weight: float


@dataclass(frozen=True, slots=True)
class Columns:
    """The items, of which the first are the states, and the ways through them; `loops` are edges from a state to it."""

    radius: float
    items: tuple[Item, ...]
    routes: tuple[Route, ...]
    loops: tuple[Edge, ...]

    def members(self) -> list[list[int]]:
        """The items of each column, in the order they were made."""
        found: list[list[int]] = [[] for _ in range(1 + max(item.column for item in self.items))]
        for k, item in enumerate(self.items):
            found[item.column].append(k)
        return found

    def segments(self) -> list[tuple[int, int, float]]:
        """All neighbours along edges as (item on the left, item on the right, how level the edge should be there).

        An edge to the next layer bends where it shares its state with more others: the fan of a choice, or of a join.
        """
        leaving = Counter(route.stops[0] for route in self.routes if route.weight == FIRM)
        entering = Counter(route.stops[-1] for route in self.routes if route.weight == FIRM)
        pairs = []
        for route in self.routes:
            out, into = leaving[route.stops[0]], entering[route.stops[-1]]
            for a, b in pairwise(route.stops):
                bends = route.weight == FIRM and (out > into if a == route.stops[0] else into > out)
                left, right = (a, b) if self.items[a].column < self.items[b].column else (b, a)
                pairs.append((left, right, route.weight / (50 if bends else 1)))
        return pairs


FIRM, LOOSE = 1000.0, 1.0  # edges one layer forward shape the picture, the others go around it


def columns(automaton: Automaton) -> Columns:
    """The items and routes of an automaton, not yet placed.

    >>> from cerite.automaton import TRUE, Transition
    >>> steps = Transition(0, TRUE, 0, 1), Transition(1, TRUE, 0, 2), Transition(2, TRUE, 0, 1)
    >>> made = columns(Automaton(3, 0, frozenset({2}), steps, (), (frozenset(),)))
    >>> made.members()
    [[0], [3], [1], [4, 5], [2]]
    """
    layer = layers(automaton)
    every = edges(automaton)
    loops = {edge.source: edge for edge in every if edge.source == edge.target}
    others = [edge for edge in every if edge.source != edge.target]
    others.sort(key=lambda edge: layer[edge.source] - layer[edge.target])  # stable: forward ones come first
    radius = _radius(others, layer)
    items = []
    for state in range(automaton.n_states):
        width, above = 2 * radius, radius + 4
        if state in loops:
            lines = loops[state].lines
            width, above = max(width, text_width(lines)), radius + LOOP + LIFT + LINE * len(lines)
        items.append(Item(Kind.STATE, 2 * layer[state], width, above, radius + 4, 2 * FIRM))
    routes = []
    for edge in others:
        start, end = 2 * layer[edge.source], 2 * layer[edge.target]
        weight = FIRM if end == start + 2 else LOOSE
        stops = [edge.source]
        for column in _passed(start, end):
            if len(stops) > 1:
                made = Item(Kind.LANE, column, 0, 6, 6, 4 * LOOSE)
            elif start == end:
                half = LINE * len(edge.lines) / 2 + TAB
                made = Item(Kind.TURN, column, text_width(edge.lines) + 10, half, half, weight)
            else:
                above = LINE * len(edge.lines) + LIFT - 1
                made = Item(Kind.LABEL, column, text_width(edge.lines), above, 2, weight)
            stops.append(len(items))
            items.append(made)
        routes.append(Route(edge, (*stops, edge.target), stops[1], weight))
    return Columns(radius, tuple(items), tuple(routes), tuple(loops.values()))


def layers(automaton: Automaton) -> list[int]:
    """The distance of each state from the start; states that no run reaches begin again at 0."""
    following: dict[int, list[int]] = {}
    for t in automaton.transitions:
        following.setdefault(t.source, []).append(t.target)
    layer: dict[int, int] = {}
    for root in (automaton.initial, *range(automaton.n_states)):
        if root in layer:
            continue
        layer[root] = 0
        todo = deque([root])
        while todo:
            state = todo.popleft()
            for target in following.get(state, ()):
                if target not in layer:
                    layer[target] = layer[state] + 1
                    todo.append(target)
    return [layer[state] for state in range(automaton.n_states)]


def _radius(others: list[Edge], layer: list[int]) -> float:
    """One size for all states, with room for the edges on the busiest side of one."""
    sides: Counter[tuple[int, bool]] = Counter()
    for edge in others:
        for state, other in ((edge.source, edge.target), (edge.target, edge.source)):
            sides[state, layer[other] >= layer[state]] += 1
    busiest = max(sides.values(), default=0)
    return min(WIDEST, max(RADIUS, PORT * (busiest - 1) / (2 * REACH)))


def _passed(start: int, end: int) -> range:
    """The columns strictly between two states; the one to the right if they are in the same."""
    if start == end:
        return range(start + 1, start + 2)
    step = 1 if start < end else -1
    return range(start + step, end, step)
