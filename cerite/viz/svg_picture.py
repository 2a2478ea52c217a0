"""An automaton as an SVG picture that needs nothing else: no fonts, no scripts, no fixed background."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from cerite.automaton import Automaton
from cerite.viz.columns import Kind
from cerite.viz.edges import Edge, Line, name
from cerite.viz.measure import CELL, FONT, LIFT, LINE, LOOP, cells, shown
from cerite.viz.paths import edge_path, loop_path, number, start_path
from cerite.viz.placing import START, Placed, placed

# A page that holds the picture lends it its text colour; on its own, the picture follows the reader's theme.
_STYLE = "<style>svg:root{color:#1f2328}@media (prefers-color-scheme:dark){svg:root{color:#e6edf3}}</style>"
_FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"


def svg(automaton: Automaton) -> str:
    """The picture, from the start on the left; pointing at an edge shows the full text of its transitions.

    Transitions that mark events are drawn stronger than those that only read them.

    >>> from cerite.automaton import Transition
    >>> labels = (frozenset(), frozenset({"x"}))
    >>> picture = svg(Automaton(2, 0, frozenset({1}), (Transition(0, 0, 1, 1),), ("price > 1",), labels))
    >>> picture.startswith("<svg xmlns="), "price &gt; 1 / x" in picture
    (True, True)
    """
    picture = placed(automaton)
    width, height = number(picture.width), number(picture.height)
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" fill="none" stroke="none" font-family="{_FONT}" font-size="{number(FONT)}">',
        f"<title>Automaton: states {automaton.n_states}, transitions {len(automaton.transitions)}</title>",
        _STYLE,
    ]
    rows += [_routed(picture, k) for k in range(len(picture.columns.routes))]
    rows += [_loop(picture, edge) for edge in picture.columns.loops]
    rows.append(f"<g>{_arrow(*start_path(picture, automaton.initial, START), 1.6)}</g>")
    rows += [_state(picture, automaton, state) for state in range(automaton.n_states)]
    return "\n".join((*rows, "</svg>")) + "\n"


def _routed(picture: Placed, k: int) -> str:
    route = picture.columns.routes[k]
    span, y = picture.span(route.label), picture.y[route.label]
    if picture.columns.items[route.label].kind is Kind.TURN:
        texts = _texts(route.edge.lines, y + LINE * len(route.edge.lines) / 2, left=span.left + 4)
    else:
        texts = _texts(route.edge.lines, y - LIFT + LINE - FONT, middle=span.middle)
    return _edge(route.edge, edge_path(picture, k), texts)


def _loop(picture: Placed, edge: Edge) -> str:
    bottom = picture.y[edge.source] - picture.columns.radius - LOOP
    return _edge(
        edge, loop_path(picture, edge.source), _texts(edge.lines, bottom, middle=picture.span(edge.source).middle)
    )


def _edge(edge: Edge, line: tuple[str, str], texts: str) -> str:
    told = "\n".join((f"{name(edge.source)} → {name(edge.target)}", *map(str, edge.lines)))
    return f"<g><title>{escape(told)}</title>{_arrow(*line, 1.6 if edge.marked else 1)}{texts}</g>"


def _arrow(line: str, head: str, width: float) -> str:
    faint = "" if width > 1 else ' opacity=".7"'
    return (
        f'<g{faint}><path d="{line}" stroke="currentColor" stroke-width="{number(width)}"/>'
        f'<path d="{head}" fill="currentColor"/></g>'
    )


def _texts(lines: Sequence[Line], bottom: float, *, left: float | None = None, middle: float = 0) -> str:
    """Lines of text above `bottom`; variables stand out. Centred by width: not all viewers centre text in pieces."""
    rows = []
    for k, line in enumerate(map(shown, lines)):
        y = bottom - LINE * (len(lines) - 1 - k) - (LINE - FONT) / 2 - 1
        x = middle - CELL * cells(str(line)) / 2 if left is None else left
        marks = f'<tspan font-weight="700">{escape(line.marks)}</tspan>' if line.marked else escape(line.marks)
        text = f"{escape(line.reads)} / {marks}"
        rows.append(f'<text x="{number(x)}" y="{number(y)}" fill="currentColor">{text}</text>')
    return "".join(rows)


def _state(picture: Placed, automaton: Automaton, state: int) -> str:
    x, y = number(picture.span(state).middle), picture.y[state]
    final = state in automaton.finals
    told = name(state) + (", start" if state == automaton.initial else "") + (", final" if final else "")
    radius = picture.columns.radius
    radii = (radius, radius - 4) if final else (radius,)
    circles = "".join(
        f'<circle cx="{x}" cy="{number(y)}" r="{number(r)}" stroke="currentColor" stroke-width="1.6"/>' for r in radii
    )
    size = min(FONT, FONT * 1.5 * radius / (CELL * (len(name(state)) + 0.5)))
    text = (
        f'<text x="{x}" y="{number(y + 0.35 * size)}" font-size="{number(size)}" text-anchor="middle" '
        f'fill="currentColor">{name(state)}</text>'
    )
    return f"<g><title>{told}</title>{circles}{text}</g>"
