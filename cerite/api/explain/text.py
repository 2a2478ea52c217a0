"""`cerite explain`: a query as a tree a person can read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from io import StringIO
from typing import cast

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from cerite.api.explain.engine import explain_engine
from cerite.core.errors import CeriteError
from cerite.core.names import quoted
from cerite.core.schema import Schema
from cerite.engine.plan import Plan, plan
from cerite.pattern import nodes
from cerite.pattern.check import check
from cerite.pattern.check_kinds import event_types
from cerite.pattern.printing import event_text, on_text, whole_text
from cerite.pattern.query import Consume, QuerySpec
from cerite.pattern.references import orient_references
from cerite.pattern.rewrite.counts import bounded_counts
from cerite.pattern.rewrite.lp import is_lp_normal, lp_normal
from cerite.pattern.rewrite.orders import expand_permute
from cerite.pattern.rewrite.safe import unsafe_variables
from cerite.pattern.rewrite.skips import expand_skips
from cerite.pattern.variables import bound, counts
from cerite.predicate.expression import aggregates, references

_WIDTH = 120
_DESCRIBED = {
    "Sequence": "sequence ;   (anything may lie between)",
    "Concat": "contiguous sequence :   (nothing between)",
    "Union": "one of (OR)",
    "Intersection": "the same match satisfies all (AND)",
    "Permute": "each, in any order",
    "SkipAny": "skip till any ⟲",
    "SkipNext": "skip till next @",
    "Complement": "any stretch that does not match",
    "Empty": "nothing consumed ε",
    "Nothing": "never ∅",
}


def explanation(query: QuerySpec, schema: Schema | None = None, planned: Callable[[], Plan] | None = None) -> Tree:
    """The query's clauses, pattern, variables, registers, checks and rewrites, and its plan if that is `planned`."""
    notes = check(query, schema)
    tree = Tree(Text("query", style="bold"))
    _pattern(tree.add("pattern"), query.where)
    _clauses(tree.add("clauses"), query)
    _variables(tree.add("variables"), query)
    _registers(tree.add("registers (what later conditions read)"), query.where)
    checks = tree.add("checks")
    checks.add("well-formed: every filter is on a variable its pattern binds")
    unsafe = sorted(unsafe_variables(query.where))
    checks.add(Text(f"safe: {'no, bound more than once: ' + ', '.join(unsafe) if unsafe else 'yes'}"))
    checks.add(f"LP-normal form: {'yes' if is_lp_normal(query.where) else 'no, see rewrites'}")
    for note in notes:
        checks.add(Text(f"warning: {note.message}", style="yellow"))
    _rewrites(tree.add("rewrites"), query.where)
    explain_engine(tree.add("engine"), planned or partial(plan, query), query.schema if schema is None else schema)
    return tree


class Explanation:
    """An explanation that shows itself as text, as a tree in a terminal, or as HTML in a notebook."""

    def __init__(self, query: QuerySpec, schema: Schema | None, planned: Callable[[], Plan]) -> None:
        self._tree = explanation(query, schema, planned)

    def __rich__(self) -> Tree:
        return self._tree

    def __str__(self) -> str:
        console = Console(file=StringIO(), width=_WIDTH, color_system=None)
        console.print(self._tree)
        return "\n".join(line.rstrip() for line in cast(StringIO, console.file).getvalue().splitlines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        console = Console(file=StringIO(), width=_WIDTH, record=True)
        console.print(self._tree)
        return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


def _pattern(tree: Tree, node: nodes.Pattern) -> None:
    branch = tree.add(Text(_title(node)))
    if isinstance(node, nodes.Sequence):
        for index, part in enumerate(node.parts):
            for negated in node.absent[index - 1] if index else node.before:
                where = "in the gap before the next" if index else "in the window before it"
                _pattern(branch.add(f"NOT, {where}"), negated)
            _pattern(branch, part)
        for negated in node.after:
            _pattern(branch.add("NOT, until the window is over"), negated)
        return
    for child in node.children:
        _pattern(branch, child)


def _title(node: nodes.Pattern) -> str:
    match node:
        case nodes.Event():
            kind = "event" if node.output else "event, not marked"
            stored = "" if node.register is None else f", stored in {node.register}"
            return f"{kind} {event_text(node)}{stored}"
        case nodes.Named(variable=variable):
            return f"named {quoted(variable)}"
        case nodes.Filter(conditions=conditions):
            return "filter " + " AND ".join(map(on_text, conditions))
        case nodes.Having(conditions=conditions):
            return "filter on the whole: " + " AND ".join(map(whole_text, conditions))
        case nodes.Iteration(least=least, most=most, contiguous=contiguous):
            times = f"{least} or more" if most is None else f"{least}" if least == most else f"{least} to {most}"
            return f"repeated {times} times" + (", contiguous" if contiguous else "")
        case nodes.Window(size=size):
            return f"within {size}"
        case nodes.Select(strategy=strategy):
            return f"selected by {strategy.value}"
        case nodes.Project(variables=variables):
            return f"only the variables {', '.join(variables) or '(none)'}"
    return _DESCRIBED[type(node).__name__]


def _clauses(tree: Tree, query: QuerySpec) -> None:
    shown = ("every variable",) if query.items is None else query.items
    chosen = ", ".join(map(str, (*shown, *query.measures)))
    tree.add(Text(f"SELECT {chosen}" + (f", strategy {query.strategy.value}" if query.strategy else "")))
    tree.add(Text(f"FROM {', '.join(map(quoted, query.streams))}"))
    tree.add(
        Text(
            f"PARTITION BY {', '.join(query.partition)}: one substream per value" if query.partition else "no partition"
        )
    )
    tree.add(Text(f"WITHIN {query.within}, both ends inside" if query.within else "no window"))
    if query.consume is not Consume.NONE:
        tree.add(f"CONSUME BY {query.consume.value}: a completed match forgets the partial ones")
    if query.limit is not None:
        tree.add(f"LIMIT {query.limit} per occurrence")
    if query.suppress is not None:
        size, scope = query.suppress.size, "its partition" if query.suppress.per_partition else "the whole stream"
        tree.add(f"SUPPRESS {query.suppress}: after a match none is reported in {scope} until {size} are over")


def _variables(tree: Tree, query: QuerySpec) -> None:
    types = event_types(query.where)
    for variable in sorted(bound(query.where)):
        least, most = counts(query.where, variable)
        times = f"{least}" if least == most else f"{least} to {'any number of' if most == float('inf') else int(most)}"
        kinds = ", ".join(sorted("any type" if kind is None else kind for kind in types[variable]))
        tree.add(Text(f"{quoted(variable)}: {times} event{'' if times == '1' else 's'} of {kinds}"))


def _registers(tree: Tree, pattern: nodes.Pattern) -> None:
    read: dict[str, set[str]] = {}
    for condition in nodes.conditions_of(orient_references(pattern)):
        for reference in references(condition):
            read.setdefault(reference.variable, set()).add(quoted(reference.name))
        for each in aggregates(condition):
            read.setdefault(each.variable or "", set()).add(str(each))
    for variable in sorted(read):
        whose = quoted(variable) if variable else "the whole pattern"
        tree.add(Text(f"{whose} keeps {', '.join(sorted(read[variable]))}"))
    if not read:
        tree.add("none: every condition looks at one event")


def _rewrites(tree: Tree, pattern: nodes.Pattern) -> None:
    steps = (
        ("PERMUTE and ⟲ @ expanded", lambda node: expand_skips(expand_permute(node))),
        ("references written on the later event", orient_references),
        ("thresholds on counts as bounds of iterations", bounded_counts),
        ("LP-normal form", lp_normal),
    )
    current = pattern
    for title, rewrite in steps:
        try:
            changed = rewrite(current)
        except CeriteError as error:
            tree.add(Text(f"{title}: {error.message}", style="yellow"))
            continue
        if changed != current:
            tree.add(title).add(Text(str(changed)))
        current = changed
    if current == pattern:
        tree.add("none needed")
