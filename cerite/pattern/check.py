"""Whether a query is meaningful: what must be refused, and what deserves a warning.

`check(query, schema)` raises the first error, pointing at it, and returns warnings otherwise. It covers ICDT's
*well-formed* (section 5: no filter on a variable that its pattern does not bind), docs/semantics.md's rules for
references, negation and windows, and the kinds of all conditions against the schema.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cerite.core.errors import CeriteError, Hint, PatternError, SchemaError, Span, StreamError, listed, suggestion
from cerite.core.schema import Kind, Schema, merge
from cerite.pattern import nodes
from cerite.pattern.absences import check_absences
from cerite.pattern.check_kinds import check_kinds
from cerite.pattern.measures import check_measures
from cerite.pattern.never import reason
from cerite.pattern.query import Consume, QuerySpec
from cerite.pattern.references import resolve
from cerite.pattern.rewrite.safe import unsafe_variables
from cerite.pattern.variables import bound, nullable, written
from cerite.predicate.expression import Aggregate, Moment, variables
from cerite.predicate.expression import walk as walk_condition


@dataclass(frozen=True, slots=True)
class Note:
    """A warning: the query runs, but may not say what its writer meant."""

    message: str
    span: Span | None = None
    hint: str | None = None


def check(query: QuerySpec | nodes.Pattern, schema: Schema | None = None) -> list[Note]:
    """Raise the first error of the query; return its warnings.

    >>> from cerite.language.ceql import parse_query
    >>> [note.message for note in check(parse_query("SELECT * FROM S WHERE A AS x ; B AS x WITHIN 5 EVENTS"))]
    ['`x` is bound more than once: it holds all these events']
    """
    whole = query if isinstance(query, QuerySpec) else QuerySpec(query)
    try:
        _check_filters(whole.where, bound(whole.where))
        _check_aggregates(whole.where)
        _check_shapes(whole.where, windowed=whole.within is not None)
        check_absences(whole)
        resolve(whole.where, strict=True)
        _check_clauses(whole)
        check_measures(whole)
        declared = _of_its_streams(whole)
        check_kinds(whole, declared if schema is None else schema)
    except CeriteError as error:
        raise error.at(whole.source) from None
    return _warnings(whole)


def _check_filters(node: nodes.Pattern, around: frozenset[str]) -> None:
    for each in node.children:
        _check_filters(each, around)
    if isinstance(node, nodes.Filter):
        own = bound(node.operand)
        for on in node.conditions:
            if on.variable not in own:
                raise _unbound(on, node.operand, own, around)


def _check_aggregates(pattern: nodes.Pattern) -> None:
    """Refuse conditions that use what only measures may."""
    wholes = {id(each) for node in nodes.walk(pattern) if isinstance(node, nodes.Having) for each in node.conditions}
    for condition in nodes.conditions_of(pattern):
        for node in walk_condition(condition):
            if isinstance(node, Moment):
                raise PatternError(
                    f"`{node}` is a measure of a whole match, which a condition cannot read", span=node.span,
                    hint="limit how long a match takes with WITHIN, or compare times: `z[at - x.at > 5 seconds]`",
                )  # fmt: skip
            if isinstance(node, Aggregate) and node.function == "COLLECT":
                hint = "it is a measure; conditions compare single values"
                raise PatternError(f"`{node}` has no place in a condition", span=node.span, hint=hint)
            if isinstance(node, Aggregate) and node.variable is None and id(condition) not in wholes:
                raise PatternError(
                    f"`{node}` counts all events of a whole pattern, and this condition is about one event",
                    span=node.span, hint="write it outside of the brackets, `FILTER COUNT(*) >= 5`, or name what is "
                    "counted so far: `(…) AS y ; z[COUNT(y) >= 5]`",
                )  # fmt: skip


def _unbound(on: nodes.On, operand: nodes.Pattern, own: frozenset[str], around: frozenset[str]) -> PatternError:
    negated = [each for part in nodes.walk(operand) if isinstance(part, nodes.Sequence) for each in part.negated]
    hint = suggestion(on.variable, own) or f"it binds {listed(own)}"
    if any(on.variable in bound(each) for each in negated):
        hint = f"`{on.variable}` is inside NOT; put its filter there too: NOT (… AS {on.variable} FILTER …)"
    elif any(isinstance(part, nodes.Project) and on.variable in bound(part.operand) for part in nodes.walk(operand)):
        hint = f"`{on.variable}` is projected away; filter it before the projection, or keep it"
    elif on.variable in around and own:
        other = min(own, key=lambda name: (name.isupper(), name))
        hint = f"`{on.variable}` is bound outside this pattern; write `{other}[{on.variable}.… ]`"
    return PatternError(
        f"the pattern before FILTER never binds `{on.variable}`, so the filter would say nothing",
        span=on.span, hint=hint,
    )  # fmt: skip


def _check_shapes(node: nodes.Pattern, *, windowed: bool) -> None:
    windowed = windowed or isinstance(node, nodes.Window)
    if isinstance(node, nodes.Sequence):
        _check_negation(node, windowed=windowed)
    if isinstance(node, nodes.Project):
        _check_projection(node)
    if isinstance(node, nodes.Complement) and not windowed and _remembers(node.operand):
        raise PatternError(
            "the complement of a pattern that reads its own registers needs a window", span=node.span,
            hint="write COMPLEMENT((… WITHIN 100 EVENTS)), or give the query a WITHIN",
        )  # fmt: skip
    if (
        isinstance(node, nodes.SkipNext)
        and not windowed
        and any(not isinstance(each, nodes.Event) for each in node.parts[1:])
    ):
        raise PatternError(
            "skip-till-next over parts longer than one event needs a window", span=node.span,
            hint="add WITHIN to the query or around it (definition 45 is about windowed expressions)",
        )  # fmt: skip
    for each in node.children:
        _check_shapes(each, windowed=windowed)


def _check_projection(node: nodes.Project) -> None:
    known = bound(node.operand)
    for variable in node.variables:
        if variable not in known:
            raise PatternError(
                f"PROJECT keeps `{variable}`, which its pattern never binds", span=node.span,
                hint=suggestion(variable, known) or f"it binds {listed(known)}",
            )  # fmt: skip


def _check_negation(node: nodes.Sequence, *, windowed: bool) -> None:
    for index, gap in enumerate((node.before, *node.absent, node.after)):
        for negated in gap:
            if nullable(negated):
                raise PatternError(
                    "this negated pattern can be empty, so it always occurs", span=negated.span,
                    hint="negate something that needs an event: `NOT B`, not `NOT B*`",
                )  # fmt: skip
            sides = (node.parts[:index], node.parts[index:])
            for side, where in zip(sides, ("before", "after"), strict=True):
                if side and all(map(nullable, side)):
                    raise PatternError(
                        f"what stands {where} this NOT can be empty, so nothing bounds it", span=negated.span,
                        hint=f"put a pattern that needs an event {where} NOT",
                    )  # fmt: skip
            if not windowed and not _single(negated):
                raise PatternError(
                    "negating a sequence needs WITHIN", span=negated.span,
                    hint="add `WITHIN 30 seconds` (or EVENTS) to the query; only a single event can do without",
                )  # fmt: skip


def _single(node: nodes.Pattern) -> bool:
    """Whether every match is one event and no selection compares it with others."""
    if isinstance(node, (nodes.Sequence, nodes.Iteration, nodes.Complement, nodes.Select)):
        return False
    return isinstance(node, nodes.Event) or (bool(node.children) and all(_single(each) for each in node.children))


def _remembers(node: nodes.Pattern) -> bool:
    """Whether some condition inside reads a register that is written inside."""
    inside = written(node)
    return any(variables(condition) & inside for condition in nodes.conditions_of(node))


def _check_clauses(query: QuerySpec) -> None:
    names = [item.variable for item in query.items or ()]
    known = bound(query.where)
    for index, item in enumerate(query.items or ()):
        if item.variable not in known:
            raise PatternError(
                f"SELECT asks for `{item.variable}`, which the pattern never binds", span=item.span,
                hint=suggestion(item.variable, known) or f"it binds {listed(known)}",
            )  # fmt: skip
        if item.variable in names[:index]:
            raise PatternError(f"SELECT names `{item.variable}` twice", span=item.span)
        if item.attributes and len(set(item.attributes)) < len(item.attributes):
            raise PatternError(f"SELECT names an attribute of `{item.variable}` twice", span=item.span)
    if len(set(query.partition)) < len(query.partition):
        raise PatternError("PARTITION BY names an attribute twice", span=query.clauses.get("partition"))
    if query.suppress is not None and not query.suppress.size.is_time:
        raise PatternError(
            f"SUPPRESS takes a time, not `{query.suppress.size}`", span=query.clauses.get("suppress"),
            hint="write `SUPPRESS 10 minutes`, perhaps with PER PARTITION",
        )  # fmt: skip
    if len(set(query.streams)) < len(query.streams):
        raise PatternError("FROM names a stream twice", span=query.clauses.get("from_clause"))


def _of_its_streams(query: QuerySpec) -> Schema | None:
    """What the query declares about the streams that it reads."""
    if query.schema is None:
        return None
    declared = {each.stream: each for each in query.schema.streams}
    schema: Schema | None = None
    for name in query.streams:
        if name not in declared:
            raise SchemaError(
                f"FROM names `{name}`, which is not declared", span=query.clauses.get("from_clause"),
                hint=suggestion(name, declared) or f"CREATE STREAM declares {listed(declared)}",
            )  # fmt: skip
        schema = merge(schema, declared[name])
    return schema


def named_types(query: QuerySpec) -> set[str]:
    """The event types that the pattern names."""
    return {node.type for node in nodes.walk(query.where) if isinstance(node, nodes.Event) and node.type is not None}


def check_type_column(query: QuerySpec, column: str | None, hint: Hint) -> None:
    """Refuse a query about several event types where no column holds them."""
    types = named_types(query)
    if column is None and len(types) > 1:
        raise StreamError(f"the query distinguishes {listed(types)}, but no column holds the event type", hint=hint)


def check_streams(query: QuerySpec, data: Iterable[str], hint: str | None = None) -> None:
    """Refuse data that lacks a stream of those that the query reads."""
    names = list(data)
    missing = [name for name in query.streams if name not in names]
    if missing:
        raise StreamError(
            f"FROM names {listed(missing)}, but the data has only {listed(names)}",
            hint=hint or "pass a dictionary that maps stream names to data",
        )


def declared_kinds(query: QuerySpec, *schemas: Schema | None) -> dict[str, Kind]:
    """The kinds of columns that the query and these schemas declare; declarations that clash are refused."""
    kinds: dict[str, Kind] = {}
    for each in (_of_its_streams(query), *schemas):
        for name, kind in (each.column_kinds if each is not None else {}).items():
            old = kinds.setdefault(name, kind)
            if {old, kind} == {"int", "float"}:
                kinds[name] = "float"
            elif old != kind:
                raise SchemaError(f"`{name}` is declared {old} by the query, but {kind} by the schema")
    return kinds


def without_effect(pattern: nodes.Pattern) -> list[Note]:
    """Complements as parts of `;` that exclude nothing: no events at all are also something else than a B.

    >>> from cerite.language.ceql import parse_pattern
    >>> without_effect(parse_pattern("A ; COMPLEMENT(B) ; C"))[0].hint
    'to say that there is none between, write NOT B; in Python absent(…) instead of ~'
    """
    return [
        Note(f"`{part}` excludes nothing here: it also matches no events at all", part.span,
             f"to say that there is none between, write NOT {part.operand}; in Python absent(…) instead of ~")
        for node in nodes.walk(pattern) if isinstance(node, nodes.Sequence)
        for part in node.parts if isinstance(part, nodes.Complement) and not nullable(part.operand)
    ]  # fmt: skip


def _warnings(query: QuerySpec) -> list[Note]:
    notes = without_effect(query.where)
    unsafe = unsafe_variables(query.where)
    if unsafe:
        several = len(unsafe) > 1
        notes.append(
            Note(f"{listed(unsafe)} {'are' if several else 'is'} bound more than once: "
                 f"{'each' if several else 'it'} holds all these events",
                 query.where.span, "ICDT 2019 calls this unsafe; give the events different names to tell them apart")
        )  # fmt: skip
    why = reason(query)
    if why is not None:
        notes.append(Note(why.message, why.span, why.hint))
    if query.within is None:
        notes.append(
            Note("there is no WITHIN: partial matches live for ever", query.clauses.get("where"),
                 "add a window, e.g. `WITHIN 30 seconds`, to bound memory")
        )  # fmt: skip
    if nullable(query.where):
        notes.append(Note("the pattern can be empty; only matches with an event are reported", query.where.span))
    if query.consume is Consume.PARTITION and not query.partition:
        notes.append(
            Note(
                "CONSUME BY PARTITION without PARTITION BY is the same as CONSUME BY ANY", query.clauses.get("consume")
            )
        )
    if query.suppress is not None and query.suppress.per_partition and not query.partition:
        notes.append(Note("SUPPRESS … PER PARTITION without PARTITION BY is about the whole stream",
                          query.clauses.get("suppress")))  # fmt: skip
    if query.suppress is not None and query.limit is not None:
        notes.append(Note("LIMIT has no effect with SUPPRESS, which reports at most one match at an event",
                          query.clauses.get("limit")))  # fmt: skip
    return notes
