"""Pictures of automata: complete, safe with odd names, deterministic; Graphviz reads them where it is installed."""

from __future__ import annotations

import re
import shutil
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len

from cerite.automaton import TRUE, Automaton, Transition
from cerite.automaton.draw import Arrow, Diagram, Drawable
from cerite.core.errors import CeriteError, MissingExtraError

SVG = "{http://www.w3.org/2000/svg}"
LABELS = (frozenset[str](), frozenset({"x"}), frozenset({"x", "y"}))
CONDITIONS = ("A", "B[price > 100]", "C[id = x.id]", "price > 100 AND volume < 20 AND name = 'Some long name'")
ODD = (
    "say \"hi\" <b>&amp; 'x'",
    "two\nlines\r\tand\x00more",
    "😀 日本語 [x] {y} | #35; `c` \\n $$ %% ; ends in \\",
    "\ud800\uffff]]>" + "z" * 99,
)


def automaton(n: int, finals: set[int], *steps: tuple[int, int, int, int]) -> Automaton:
    return Automaton(n, 0, frozenset(finals), tuple(Transition(*step) for step in steps), CONDITIONS, LABELS)


CASES = {
    "sequence": automaton(5, {4}, *((k, k, 1, k + 1) for k in range(4)), *((k, TRUE, 0, k) for k in range(1, 4))),
    "kleene": automaton(3, {2}, (0, 0, 1, 1), (1, 1, 2, 1), (1, TRUE, 0, 1), (1, 2, 1, 2), (2, 3, 2, 1)),
    "disjunction": automaton(6, {3, 5}, (0, 0, 1, 1), (1, 1, 2, 2), (2, 2, 1, 3),
                             (0, 3, 1, 4), (0, 1, 1, 4), (4, 0, 2, 5)),
    "row": automaton(25, {24}, *((k, k % 4, k % 3, k + 1) for k in range(24))),
    "single": automaton(1, {0}),
    "no transitions": automaton(3, {0, 2}),
    "unreached": automaton(4, {1}, (0, 0, 1, 1), (2, 1, 1, 3), (3, 2, 1, 1), (2, 2, 0, 1), (2, TRUE, 0, 2)),
    "odd": Automaton(
        3, 0, frozenset({2}),
        tuple(Transition(k // 2, k, k % 2 + 1, k // 2 + 1) for k in range(4)), ODD,
        (frozenset(), frozenset({'"<&>😀', "a\nb"}), frozenset({"∘"})),
    ),
}  # fmt: skip
every_case = pytest.mark.parametrize("a", CASES.values(), ids=CASES)
needs_graphviz = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz's program `dot` is not installed")


def texts(a: Automaton) -> list[tuple[int, int, str]]:
    """Source, target and text of every transition, read without the code under test where nothing is odd."""
    if a is CASES["odd"]:
        return [(arrow.source, arrow.target, arrow.text) for arrow in a.diagram().arrows]
    return [
        (t.source, t.target, f"{'TRUE' if t.condition == TRUE else a.conditions[t.condition]} / "
         f"{','.join(sorted(a.labels[t.label])) or '∘'}")
        for t in a.transitions
    ]  # fmt: skip


def test_characters_that_no_format_holds_are_written_as_escapes() -> None:
    shown = [text for _, _, text in texts(CASES["odd"])]
    assert shown[1] == "two\nlines\\r\tand\\x00more / ∘"
    assert shown[2] == f'{ODD[2]} / "<&>😀,a\nb'
    assert shown[3] == "\\ud800\\uffff]]>" + "z" * 99 + " / ∘"


@every_case
def test_dot_has_every_transition(a: Automaton) -> None:
    text = a.dot()
    labels = {
        (int(source), int(target)): unquoted(label)
        for source, target, label in re.findall(r'^    q(\d+) -> q(\d+) \[label="((?:[^"\\]|\\.)*)"\];$', text, re.M)
    }
    assert all(full in labels[source, target] for source, target, full in texts(a))
    assert labels.keys() == {(source, target) for source, target, _ in texts(a)}
    assert text.count("doublecircle") == len(a.finals)
    assert "    start -> q0;\n" in text


def unquoted(label: str) -> str:
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], label).replace("&amp;", "&")


@every_case
def test_mermaid_has_every_transition(a: Automaton) -> None:
    rows = a.mermaid().splitlines()
    labels = {}
    for row in rows:
        if match := re.fullmatch(r'    q(\d+) -->\|"([^"]*)"\| q(\d+)', row):
            plain = re.sub(r"#(\d+);", lambda m: chr(int(m[1])), match[2].replace("<br/>", "\n"))
            labels[int(match[1]), int(match[3])] = plain
    assert all(full in labels[source, target] for source, target, full in texts(a))
    assert len(rows) == 3 + a.n_states + len(labels)
    assert sum("(((" in row for row in rows) == len(a.finals)
    assert a.mermaid().isascii()


@every_case
def test_the_table_has_a_row_for_every_transition_and_lonely_state(a: Automaton) -> None:
    rows = str(a).splitlines()
    leaving = {t.source for t in a.transitions}
    assert len(rows) == 2 + len(a.transitions) + sum(state not in leaving for state in range(a.n_states))
    starts = [m.start() for m in re.finditer(r"-+", rows[1])]
    assert all(rows[0][k] != " " for k in starts)
    for row in rows[2:]:  # columns are aligned by what a terminal shows, not by characters
        goes = row.split(" ")[-1]
        assert cell_len(row) == starts[-1] + len(goes)


def test_wide_characters_and_combining_marks_keep_columns_aligned() -> None:
    class Wide(Drawable):
        def diagram(self) -> Diagram:
            return Diagram(2, 0, frozenset({1}), (Arrow(0, "日本 = 'e\u0301'", "", 1), Arrow(0, "price > 1", "x", 1)))

    assert str(Wide()).splitlines()[2:4] == [
        "q0     start  日本 = 'e\u0301'  ∘      q1",
        "              price > 1   x      q1",
    ]


@every_case
def test_the_same_automaton_gives_the_same_text(a: Automaton) -> None:
    again = Automaton(a.n_states, a.initial, frozenset(sorted(a.finals)), a.transitions, a.conditions, a.labels)
    assert (str(a), a.dot(), a.mermaid()) == (str(again), again.dot(), again.mermaid())


def test_transitions_between_the_same_states_share_an_edge_and_equal_texts_appear_once() -> None:
    a = Automaton(2, 0, frozenset({1}), tuple(Transition(0, k, 0, 1) for k in range(3)), ("A", "B", "A"), LABELS)
    assert 'q0 -> q1 [label="A / ∘\\nB / ∘"];' in a.dot()
    assert '"A / #8728;<br/>B / #8728;"' in a.mermaid()


@needs_graphviz
@every_case
def test_graphviz_reads_every_transition(a: Automaton) -> None:
    root = ElementTree.fromstring(a.svg().encode())
    kinds = [group.get("class") for group in root.iter(f"{SVG}g")]
    assert kinds.count("edge") == 1 + len({(t.source, t.target) for t in a.transitions})
    titles = {title.text: group for group in root.iter(f"{SVG}g") for title in group.findall(f"{SVG}title")}
    for source, target, full in texts(a):
        lines = [line.text or "" for line in titles[f"q{source}->q{target}"].iter(f"{SVG}text")]
        assert squeezed(full) in squeezed("\n".join(lines))


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_a_missing_program_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingExtraError, match=r"program `dot`.*\n.*apt install graphviz"):
        CASES["kleene"].svg()
    assert set(CASES["kleene"]._repr_mimebundle_()) == {"text/plain", "text/vnd.mermaid"}


def test_a_notebook_gets_text_and_mermaid_and_svg_if_graphviz_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    a = CASES["kleene"]
    monkeypatch.setattr(Automaton, "svg", lambda self: "<svg/>")
    expected = {"text/plain": str(a), "text/vnd.mermaid": a.mermaid(), "image/svg+xml": "<svg/>"}
    assert a._repr_mimebundle_() == expected
    assert a._repr_mimebundle_(include=None, exclude=None) == expected


def test_a_notebook_gets_only_text_of_what_is_too_large_to_draw() -> None:
    steps = ((a, 0, 1, b) for a in range(25) for b in range(1, 25))
    assert set(automaton(25, {24}, *steps)._repr_mimebundle_()) == {"text/plain"}
    long = Automaton(2, 0, frozenset({1}), (Transition(0, 0, 1, 1),), ("A" * 50_000,), LABELS)
    assert set(long._repr_mimebundle_()) == {"text/plain"}


@needs_graphviz
def test_what_graphviz_refuses_is_an_error_in_its_words() -> None:
    long = Automaton(2, 0, frozenset({1}), (Transition(0, 0, 1, 1),), ("A" * 50_000,), LABELS)
    with pytest.raises(CeriteError, match=r"Graphviz does not draw this: .*quoted string"):
        long.svg()
