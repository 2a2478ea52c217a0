"""Pictures of automata: well-formed, complete, safe with odd names, deterministic, and without overlaps."""

from __future__ import annotations

import random
import re
from itertools import combinations
from xml.etree import ElementTree

import pytest

from cerite.automaton import TRUE, Automaton, Transition
from cerite.viz import dot, mermaid, svg, table
from cerite.viz.columns import Kind
from cerite.viz.edges import edges, line
from cerite.viz.measure import cells, shown
from cerite.viz.paths import edge_path
from cerite.viz.placing import Box, Placed, placed

SVG = "{http://www.w3.org/2000/svg}"
LABELS = (frozenset[str](), frozenset({"x"}), frozenset({"x", "y"}))
CONDITIONS = ("A", "B[price > 100]", "C[id = x.id]", "price > 100 AND volume < 20 AND name = 'Some long name'")
ODD = (
    "say \"hi\" <b>&amp; 'x'",
    "two\nlines\r\tand\x00more",
    "😀 日本語 [x] {y} | #35; `c` \\n $$ %% ;",
    "\ud800￿]]>" + "z" * 99,
)


def automaton(n: int, finals: set[int], *steps: tuple[int, int, int, int]) -> Automaton:
    return Automaton(n, 0, frozenset(finals), tuple(Transition(*step) for step in steps), CONDITIONS, LABELS)


def scattered(seed: int) -> Automaton:
    """Some random automaton; not all of its states are reached."""
    r = random.Random(seed)
    n = r.randint(2, 12)
    steps = [
        (a, r.randint(TRUE, 3), r.randint(0, 2), b)
        for a in range(n) for b in range(1, n) for _ in range(2) if r.random() < r.choice((0.05, 0.2, 0.4))
    ]  # fmt: skip
    return automaton(n, {n - 1}, *dict.fromkeys(steps))


CASES = {
    "sequence": automaton(5, {4}, *((k, k, 1, k + 1) for k in range(4)), *((k, TRUE, 0, k) for k in range(1, 4))),
    "kleene": automaton(3, {2}, (0, 0, 1, 1), (1, 1, 2, 1), (1, TRUE, 0, 1), (1, 2, 1, 2), (2, 3, 2, 1)),
    "disjunction": automaton(6, {3, 5}, (0, 0, 1, 1), (1, 1, 2, 2), (2, 2, 1, 3),
                             (0, 3, 1, 4), (0, 1, 1, 4), (4, 0, 2, 5)),
    "row": automaton(25, {24}, *((k, k % 4, k % 3, k + 1) for k in range(24))),
    "long back edges": automaton(6, {5}, *((k, 0, 1, k + 1) for k in range(5)),
                                 (5, 1, 2, 1), (4, 2, 0, 2), (3, 3, 0, 2)),
    "single": automaton(1, {0}),
    "no transitions": automaton(3, {0, 2}),
    "unreached": automaton(4, {1}, (0, 0, 1, 1), (2, 1, 1, 3), (3, 2, 1, 1), (2, 2, 0, 1), (2, TRUE, 0, 2)),
    "odd": Automaton(
        3, 0, frozenset({2}),
        tuple(Transition(k // 2, k, k % 2 + 1, k // 2 + 1) for k in range(4)), ODD,
        (frozenset(), frozenset({'"<&>😀', "a\nb"}), frozenset({"∘"})),
    ),
    **{f"random {seed}": scattered(seed) for seed in range(12)},
}  # fmt: skip
every_case = pytest.mark.parametrize("a", CASES.values(), ids=CASES)


def told(a: Automaton) -> list[tuple[int, int, str]]:
    """Source, target and full text of every transition."""
    return [(t.source, t.target, str(line(a, t))) for t in a.transitions]


@every_case
def test_svg_is_well_formed_and_complete(a: Automaton) -> None:
    root = ElementTree.fromstring(svg(a).encode())
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert [t for t in texts if re.fullmatch(r"q\d+", t)] == [f"q{state}" for state in range(a.n_states)]
    for source, target, text in told(a):
        assert any(t.startswith(f"q{source} → q{target}\n") and text in t for t in titles)
    assert all(str(shown(text)) in texts for edge in edges(a) for text in edge.lines)
    assert len(list(root.iter(f"{SVG}circle"))) == a.n_states + len(a.finals)
    assert {e.get("fill") for e in root.iter()} <= {None, "none", "currentColor"}


@every_case
def test_svg_stays_inside_its_size(a: Automaton) -> None:
    picture = placed(a)
    for box in (box for column in picture.boxes for box in column):
        assert box.left > 0
        assert box.right < picture.width
        assert box.top > 0
        assert box.bottom < picture.height


@every_case
def test_nothing_overlaps(a: Automaton) -> None:
    """No two boxes overlap, and no edge runs through a state or the text of another edge or loop."""
    picture = placed(a)
    for column in picture.boxes:
        for one, other in combinations(column, 2):
            assert one.bottom <= other.top + 1 or other.bottom <= one.top + 1
    for k, route in enumerate(picture.columns.routes):
        own = {route.label, route.stops[0], route.stops[-1]}
        for x, y in points(edge_path(picture, k)[0]):
            assert not [box for column in picture.boxes for box in column if hits(picture, box, own, x, y)]


def hits(picture: Placed, box: Box, own: set[int], x: float, y: float) -> bool:
    if box.item in own or (box.item >= 0 and picture.columns.items[box.item].kind is Kind.LANE):
        return False
    return box.left < x < box.right and box.top + 1 < y < box.bottom - 1


def points(path: str) -> list[tuple[float, float]]:
    """Points along path data of M, H and C."""
    found: list[tuple[float, float]] = []
    for command, rest in re.findall(r"([MHC])([^MHC]*)", path):
        numbers = [float(text) for text in rest.split()]
        if command == "M":
            found.append((numbers[0], numbers[1]))
            continue
        x, y = found[-1]
        ax, ay, bx, by, cx, cy = numbers if command == "C" else (x, y, numbers[0], y, numbers[0], y)
        for t in (k / 24 for k in range(1, 25)):
            p, q, r, s = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
            found.append((p * x + q * ax + r * bx + s * cx, p * y + q * ay + r * by + s * cy))
    return found


@every_case
def test_dot_tells_every_transition(a: Automaton) -> None:
    text = dot(a)
    labels = {
        (int(source), int(target)): unquoted(label)
        for source, target, label in re.findall(r'^    q(\d+) -> q(\d+) \[label="((?:[^"\\]|\\.)*)"\];$', text, re.M)
    }
    assert all(full in labels[source, target] for source, target, full in told(a))
    assert text.count(" -> ") == 1 + len(edges(a))
    assert text.count("doublecircle") == len(a.finals)


def unquoted(label: str) -> str:
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], label).replace("&amp;", "&")


@every_case
def test_mermaid_tells_every_transition(a: Automaton) -> None:
    rows = mermaid(a).splitlines()
    labels = {}
    for row in rows:
        if found := re.fullmatch(r'    q(\d+) -->\|"([^"]*)"\| q(\d+)', row):
            plain = re.sub(r"#(\d+);", lambda m: chr(int(m[1])), found[2].replace("<br/>", "\n"))
            labels[int(found[1]), int(found[3])] = plain
    assert all(full in labels[source, target] for source, target, full in told(a))
    assert len(rows) == 3 + a.n_states + len(edges(a))
    assert sum("(((" in row for row in rows) == len(a.finals)
    assert mermaid(a).isascii()


@every_case
def test_table_has_a_row_for_every_transition_and_lonely_state(a: Automaton) -> None:
    rows = table(a).splitlines()
    leaving = {t.source for t in a.transitions}
    assert len(rows) == 2 + len(a.transitions) + sum(state not in leaving for state in range(a.n_states))
    starts = [m.start() for m in re.finditer(r"-+", rows[1])]
    assert all(rows[0][k] != " " for k in starts)
    for row in rows[2:]:  # columns are aligned by cells, not by characters
        goes = row.rstrip().split(" ")[-1]
        assert cells(row) == starts[-1] + len(goes)


@every_case
def test_the_same_automaton_gives_the_same_picture(a: Automaton) -> None:
    again = Automaton(a.n_states, a.initial, frozenset(sorted(a.finals)), a.transitions, a.conditions, a.labels)
    for draw in (dot, mermaid, svg, table):
        assert draw(a) == draw(again)


def test_parallel_transitions_share_an_edge_and_tell_equal_texts_once() -> None:
    a = Automaton(2, 0, frozenset({1}), tuple(Transition(0, k, 0, 1) for k in range(3)), ("A", "B", "A"), LABELS)
    (edge,) = edges(a)
    assert [str(text) for text in edge.lines] == ["A / ∘", "B / ∘"]


def test_a_long_condition_is_shortened_with_the_full_text_in_the_title() -> None:
    a = automaton(2, {1}, (0, 3, 2, 1))
    root = ElementTree.fromstring(svg(a))
    assert [t.text for t in root.iter(f"{SVG}title")][1] == f"q0 → q1\n{CONDITIONS[3]} / x,y"
    assert "price > 100 AND volume < 20… / x,y" in ["".join(t.itertext()) for t in root.iter(f"{SVG}text")]


def test_a_variable_named_like_the_empty_mark_is_still_a_mark() -> None:
    a = CASES["odd"]
    assert all(edge.marked for edge in edges(a))
