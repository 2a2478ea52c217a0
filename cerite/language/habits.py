"""Words of SQL, Flink and Esper that CEQL does not have, and what to write instead.

They are looked up before anything is taken for a misspelt word: `MEDIAN` is no `min`. Whatever stands in back-quotes
here is a condition, a pattern or a query that CEQL reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_PREVIOUS = (
    "the {0} of the b before is LAST(b.{0}): `b[{0} > coalesce(LAST(b.{0}), a.{0})]`, where a is what the first b "
    "follows"
)
_NEXT = "read the later event by its name: `A AS a : _ AS b FILTER b[{0} > a.{0}]`"
_LIKE = "write LIKE, with % for any text and _ for any character: `{0} LIKE 'A%'`"
_COLLECTED = "COLLECT gives the values to compute it from: `SELECT COLLECT(b.{0}) AS several FROM S WHERE A+ AS b`"
_PARTS = "the parts of a time are year, month, day, hour, minute, second and weekday: `hour(at) >= 9`"
_CLOCK = "conditions know the times of events only: `at - x.at < 5 minutes`"
_TEXT = "compare with text: `at > '2024-05-01T12:00:00'`"
_COLUMN = "compute a column before the query"
_CAST = "a column has one kind, which a schema declares: `CREATE STREAM S {{ EVENT A {{ price:float }} }}`"
_ADVICE: tuple[tuple[str, str], ...] = (
    ("lag prev previous", _PREVIOUS),
    ("lead", _NEXT),
    ("concat concat_ws", "texts are not joined; compare each: `first = 'a' AND second = 'b'`"),
    ("substring substr left right instr position startswith endswith contains regexp_like", _LIKE),
    ("median mode percentile percentile_cont stddev stdev variance var string_agg array_agg", _COLLECTED),
    ("mean average", "write AVG(b.{0}), of the events of a variable"),
    ("count_distinct approx_count_distinct", "write COUNT(DISTINCT b.{0}), of the events of a variable"),
    ("pow power", "write a product: `{0} * {0} > 3`"),
    ("mod", "write %: `{0} % 2 = 0`"),
    ("ifnull nvl isnull", "write `coalesce({0}, 0) > 3`, or `{0} IS NULL`"),
    ("len char_length", "write `length({0}) > 3`"),
    ("datediff date_diff timestampdiff", "subtract: `at - x.at < 5 minutes`"),
    ("dateadd date_add", "add a duration: `at > x.at + 5 minutes`"),
    ("now current_timestamp current_date getdate sysdate", _CLOCK),
    ("extract date_part datepart", _PARTS),
    ("to_timestamp to_date timestamp date", _TEXT),
    ("exists", "the pattern says what happens: `A ; B`, or without a B between: `A ; NOT B ; C`"),
    ("cast try_cast convert", _CAST),
    ("sqrt log ln exp greatest least trim replace iif", _COLUMN),
)
FUNCTIONS = {name: advice for names, advice in _ADVICE for name in names.split()}
WORDS = {
    "BETWEEN": "write `price IN RANGE(1, 5)`; both ends belong to it",
    "GROUP": "PARTITION BY [name] makes one substream per value; aggregates take the events of a variable",
    "HAVING": "write FILTER, in WHERE: `WHERE … (BUY AS y)+ FILTER COUNT(y) >= 5 AND AVG(y.price) > 3`",
    "ORDER": "matches come in the order in which they are completed; sort them afterwards",
    "MATCH_RECOGNIZE": "write the pattern in WHERE: `WHERE A AS a ; B+ AS b FILTER b[price > a.price]`",
    "FOLLOWED": "write `A ; B` for A and later B, `A : B` for B at the very next event",
    "THEN": "write `A ; B` for A and later B, `A : B` for B at the very next event",
    "BEFORE": "write `A ; B` for A and later B, or for B without an A before it, `NOT A ; B WITHIN 30 seconds`",
    "AFTER": "for B some time after A, compare their times: `A AS a ; B AS b FILTER b[at - a.at >= 5 minutes]`",
    "UNTIL": "write `A+ ; B`; what must not come between, `A ; NOT B ; C`",
    "JOIN": "name streams with a comma, `FROM Orders, Payments`; the pattern says how their events go together",
    "OVER": "aggregates take the events of a variable: `A+ AS b FILTER SUM(b.price) > 100`",
    "WHEN": "there is no CASE; join the cases with OR: `kind = 'a' AND price > 3 OR kind = 'b' AND price > 5`",
    "ILIKE": "write `lower(name) LIKE 'a%'`, in small letters",
    "MOD": FUNCTIONS["mod"].format("volume"),
} | dict.fromkeys(("REGEXP", "RLIKE", "SIMILAR", "CONTAINS", "MATCHES"), _LIKE.format("name"))
UNITS = {
    "m": "did you mean `min`?",
    **dict.fromkeys(("w", "week", "weeks"), "write `7 days`"),
    **dict.fromkeys(("mon", "month", "months"), "write `30 days`"),
    **dict.fromkeys(("y", "year", "years"), "write `365 days`"),
}
_LENGTH = re.compile(r"(?:interval\s+)?(['\"])\s*([\d.]+)\s*([a-z]*)\s*\1(?:\s*([a-z]+))?", re.I)
_LIST = re.compile(r"[(\[](\s*(?:'[^']*'|\"[^\"]*\"|-?[\d.]+)(?:\s*,\s*(?:'[^']*'|\"[^\"]*\"|-?[\d.]+))*\s*)[)\]]")
_CLAUSES = ("PARTITION", "CONSUME", "LIMIT", "SUPPRESS")


def about_a_function(name: str, attribute: str) -> str | None:
    """What to write instead of a call that another language has, of an attribute of this name."""
    advice = FUNCTIONS.get(name.lower())
    return None if advice is None else advice.format(attribute)


def about_a_word(text: str, start: int, word: str, before: str) -> str | None:
    """What to write instead of the word at `start`, or of what it belongs to."""
    last = re.search(r"(\w*)\Z", before)
    previous = last[1].upper() if last else ""
    call = re.search(r"(\w+)\s*\([^()]*\Z", before)
    if call is not None and word.upper() in ("AS", "FROM") and call[1].lower() in ("cast", "try_cast", "extract"):
        return about_a_function(call[1], "price")
    if previous in ("WITHIN", "SUPPRESS") and (length := _LENGTH.match(text, start)):
        return f"write {previous} {_duration(length)}, without quotes"
    if word[:1] in "'\"" and previous in ("TIMESTAMP", "DATETIME", "DATE", "TIME"):
        return f"write the text alone, without {previous}: {word}"
    if word[:1] in "'\"" and previous == "INTERVAL" and (length := _LENGTH.match(text, start)):
        return f"write {_duration(length)}, without quotes"
    if previous == "EVERY" and word != "[":
        return "leave `every` out: patterns keep watching, and every match is reported"
    if previous == "IN" and (items := _LIST.match(text, start)):
        return f"write IN {{{items[1].strip()}}}"
    return WORDS.get(word.upper())


def alternatives(left: object, values: Iterable[object], *, negated: bool) -> str:
    """What to write instead of `country = 'FR' OR 'DE'`."""
    return f"write `{left} {'NOT IN' if negated else 'IN'} {{{', '.join(map(str, values))}}}`"


def _duration(length: re.Match[str]) -> str:
    unit = (length[3] or length[4] or "minutes").lower()
    if unit.upper() in _CLAUSES:
        unit = "minutes"
    plural = unit if unit.endswith("s") or len(unit) < 4 or length[2] == "1" else unit + "s"
    return f"{length[2]} {plural}"
