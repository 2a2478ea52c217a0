"""Programs: conditions across events as the kernels run them, without compilation per query.

A program is a stretch of (operation, argument) pairs in postfix order over a stack of payloads with NULL flags
(`interpret`). Most conditions are one comparison of a leaf of the event with one stored value; these are also noted as
`Simple`, which kernels check without a stack and can index: equality by hash, order by a tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cerite.engine.registers import interpret as op
from cerite.engine.registers.leaves import Leaf, Running

Slot = tuple[str, Leaf | Running]  # a register and what it stores of its event, or of all its events


@dataclass(frozen=True, slots=True)
class Simple:
    """`event leaf op stored value`, both numbers of one kind, or strings for (in)equality."""

    op: int
    leaf: int
    slot: int
    is_float: bool


@dataclass
class Postfix:
    """One condition: its code, the stored values it reads, and the one comparison it may be."""

    code: list[tuple[int, int]] = field(default_factory=list)
    slots: frozenset[int] = frozenset()
    needs: frozenset[int] = frozenset()  # those whose register must hold an event: not the values of aggregates
    simple: Simple | None = None
    text: str = ""

    @property
    def orders_strings(self) -> bool:
        """Whether it asks which of two strings comes first."""
        return any(name == op.COMPARE_STRING and how not in (op.EQUAL, op.DIFFERENT) for name, how in self.code)


class Operands:
    """What the programs of one query share: leaves, stored values and constants, each by its number."""

    def __init__(self) -> None:
        self.leaves: dict[Leaf, int] = {}
        self.slots: dict[Slot, int] = {}
        self.constants: list[int] = []

    def leaf(self, leaf: Leaf) -> int:
        """The number of a leaf."""
        return self.leaves.setdefault(leaf, len(self.leaves))

    def slot(self, register: str, leaf: Leaf | Running) -> int:
        """The number of a value that is stored of a register's event, or of all its events."""
        self.leaf(leaf.of if isinstance(leaf, Running) else leaf)
        return self.slots.setdefault((register, leaf), len(self.slots))

    def push(self, payload: int, program: Postfix) -> None:
        """Let a program put a constant on the stack."""
        program.code.append((op.CONSTANT, len(self.constants)))
        self.constants.append(payload)

    def read(self, leaf: Leaf, source: str, program: Postfix) -> None:
        """Let a program put a leaf of the event at hand (source '') or of a register's event on the stack."""
        program.code.append((op.STORED, self.slot(source, leaf)) if source else (op.EVENT, self.leaf(leaf)))
