"""What a picture says about transitions: the text of one, and all between the same two states as one edge."""

from __future__ import annotations

from dataclasses import dataclass

from cerite.automaton import TRUE, Automaton, Transition

UNMARKED = "∘"


@dataclass(frozen=True, slots=True)
class Line:
    """One transition as text: the condition it reads and the variables it marks the event with."""

    reads: str
    marks: str
    marked: bool

    def __str__(self) -> str:
        return f"{self.reads} / {self.marks}"


@dataclass(frozen=True, slots=True)
class Edge:
    """All transitions from one state to another; equal texts are told once."""

    source: int
    target: int
    lines: tuple[Line, ...]

    @property
    def marked(self) -> bool:
        return any(line.marked for line in self.lines)


def name(state: int) -> str:
    """How pictures call a state."""
    return f"q{state}"


def line(automaton: Automaton, transition: Transition) -> Line:
    """The text of a transition."""
    reads = "TRUE" if transition.condition == TRUE else visible(str(automaton.conditions[transition.condition]))
    marks = ",".join(map(visible, sorted(automaton.labels[transition.label])))
    return Line(reads, marks if transition.label else UNMARKED, transition.label > 0)


def edges(automaton: Automaton) -> list[Edge]:
    """The edges by source and target; the lines of an edge are in the order of the transitions.

    >>> labels = (frozenset(), frozenset({"x"}))
    >>> a = Automaton(2, 0, frozenset({1}), (Transition(0, 0, 1, 1), Transition(0, TRUE, 0, 1)), ("A",), labels)
    >>> [(e.source, e.target, [str(text) for text in e.lines]) for e in edges(a)]
    [(0, 1, ['A / x', 'TRUE / ∘'])]
    """
    found: dict[tuple[int, int], dict[Line, None]] = {}
    for t in automaton.transitions:
        found.setdefault((t.source, t.target), {})[line(automaton, t)] = None
    return [Edge(source, target, tuple(lines)) for (source, target), lines in sorted(found.items())]


def visible(text: str) -> str:
    """The text with characters that no format can hold (controls, lone surrogates) written as escapes.

    >>> print(visible("a\\x00b"))
    a\\x00b
    """
    return "".join(c if _holdable(c) else c.encode("unicode_escape").decode("ascii") for c in text)


def one_line(text: str) -> str:
    """The text with its line breaks and tabs written as escapes.

    >>> print(one_line("a\\nb"))
    a\\nb
    """
    breaks = "\n\t\x85\u2028\u2029"
    return "".join(c.encode("unicode_escape").decode("ascii") if c in breaks else c for c in text)


def _holdable(c: str) -> bool:
    code = ord(c)
    if code < 0x20:
        return c in "\n\t"
    return not (0x7F <= code < 0xA0 and code != 0x85) and not 0xD800 <= code < 0xE000 and code not in (0xFFFE, 0xFFFF)
