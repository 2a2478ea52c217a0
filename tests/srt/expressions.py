"""Random SREMO, and the strings they are tried on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from hypothesis import strategies as st

from cerite.pattern import (
    Complement,
    Concat,
    Empty,
    Event,
    Intersection,
    Iteration,
    Nothing,
    Pattern,
    Size,
    SkipAny,
    SkipNext,
    Union,
    Window,
)
from cerite.predicate.expression import Attribute, Comparison, Expression, Not, Reference
from cerite.reference.semantics import Stream
from tests import strategies as random

REGISTERS = ("r", "s")
Rows = list[dict[str, Any]]
Expressions = st.SearchStrategy[Pattern]
many = random.many


@cache
def conditions() -> st.SearchStrategy[Expression]:
    """Mostly (in)equality with a register, by name or by the type of the events in it; some of any kind."""
    stored = st.builds(Reference, st.sampled_from((*REGISTERS, "A")), st.just("id"))
    compared = st.builds(Comparison, st.sampled_from(["=", "=", "!="]), st.just(Attribute("id")), stored)
    return st.one_of(*[compared] * 6, compared.map(Not), random.likely_conditions((*REGISTERS, "A")))


@cache
def terminals() -> st.SearchStrategy[Event]:
    """ϕ ↑ o ↓ r: of any type and marked for the most part, so that strings match and registers decide."""
    types = st.sampled_from([None, None, None, "A", "B"])
    marks = st.sampled_from([True, True, True, False])
    stored = st.sampled_from([*REGISTERS, *REGISTERS, None])
    plain = st.builds(Event, types, st.none(), marks, stored)
    return plain | st.builds(Event, types, conditions(), marks, stored)


def star(inner: Expressions) -> Expressions:
    counts = st.sampled_from([(0, None), (0, None), (1, None), (0, 1), (1, 2), (2, 2)])
    return st.builds(lambda part, count: Iteration(part, count[0], count[1], contiguous=True), inner, counts)


def regular(inner: Expressions) -> Expressions:
    return many(inner).map(Concat) | many(inner).map(Concat) | many(inner).map(Union) | star(inner)


def after_storing(inner: Expressions) -> Expressions:
    """The same, for the most part with something in a register to begin with."""
    stored = st.sampled_from([Event(None, None, True, register) for register in REGISTERS])
    following = st.builds(lambda first, rest: Concat((first, rest)), stored, inner)
    return following | following | inner


@cache
def sremo(size: int = 4) -> Expressions:
    """Definition 15: ε, ∅, terminals, +, · and *."""
    leaves = st.one_of(*[terminals()] * 6, st.sampled_from([Empty(), Nothing()]))
    return after_storing(st.recursive(leaves, regular, max_leaves=size))


@cache
def extended(size: int = 4) -> Expressions:
    """With the operators of section 5: &, !, windows, ⟲ and @."""

    def grow(inner: Expressions) -> Expressions:
        return (
            regular(inner)
            | many(inner, most=2).map(Intersection)
            | inner.map(Complement)
            | windows(inner)
            | many(inner, 1).map(SkipAny)
            | many(inner, 1, 2).map(SkipNext)
        )

    return after_storing(st.recursive(terminals(), grow, max_leaves=size))


def windows(inner: Expressions) -> Expressions:
    return st.builds(Window, inner, st.integers(1, 4).map(Size.events))


@cache
def marked() -> Expressions:
    """Terminals that mark their event."""
    return terminals().map(lambda event: replace(event, output=True))


@cache
def chains(length: int) -> Expressions:
    """So many marked events in a row, of any type; all that matters is what is in r when it is read."""
    compared = [Comparison(op, Attribute("id"), Reference("r", "id")) for op in ("=", "!=")]
    read, stored = st.sampled_from([None, None, *compared]), st.sampled_from(["r", "r", None])
    event = st.builds(Event, st.none(), read, st.just(True), stored)
    return st.lists(event, min_size=length, max_size=length).map(lambda parts: Concat(tuple(parts)))


@cache
def marked_ends() -> Expressions:
    """Some ways to go from a marked event to a marked event: what a window bounds, seldom deterministic."""
    through = st.builds(lambda first, middle, last: Concat((first, middle, last)), marked(), sremo(2), marked())
    return many(through | through | chains(3), 1, 3).map(Union)


@cache
def acyclic(size: int = 4) -> Expressions:
    """Expressions that read a bounded number of events."""
    return st.recursive(
        terminals(), lambda inner: many(inner).map(Concat) | many(inner).map(Union), max_leaves=size
    )  # fmt: skip


@cache
def enclosed() -> Expressions:
    """An intersection or a complement, with registers written before and read behind it."""

    def both(length: int) -> Expressions:
        return many(chains(length), most=2).map(Intersection)

    def joined(*parts: Expressions) -> Expressions:
        return st.tuples(*parts).map(Concat)

    once = chains(1)
    return joined(both(3), once) | joined(once, chains(2).map(Complement), once) | joined(once, star(both(2)), once)


@cache
def streams(most: int = 4) -> st.SearchStrategy[Rows]:
    """Short streams of few types and values, some of them NULL or missing."""
    number = st.sampled_from([0, 0, 0, 1, 1, 1, 2, None])
    row = st.fixed_dictionaries({"type": st.sampled_from("AB"), "id": number}, optional={"price": number})
    return st.lists(row, min_size=most, max_size=most)


def substrings(rows: Rows, longest: int | None = None) -> Iterator[Stream]:
    """Every stretch of the stream, the empty one once; positions are those of the whole."""
    events = Stream.of(rows).events
    yield Stream()
    for low in range(len(events)):
        for high in range(low + 1, len(events) + 1):
            if longest is None or high - low <= longest:
                yield Stream(events[low:high])
