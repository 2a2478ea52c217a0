"""The same events in columns of different types: their meaning must not depend on how they are stored.

Ids and prices as whole numbers, unsigned ones, floats, decimals of few and of many digits; times as whole numbers
beyond 2^53, floats between two steps, decimals, timestamps of every unit and zone; texts as views and dictionaries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

Rows = list[dict[str, Any]]
Dressed = tuple[pa.DataType, Callable[[Any], Any]]


def _same(value: Any) -> Any:
    return value


def _exact(value: Any) -> Any:
    return None if value != value else Decimal(str(value))


def _real(value: Any) -> Any:
    return -0.0 if value == 0 and value is not False else float(value)


IDS: dict[str, Dressed] = {
    "int64": (pa.int64(), _same), "int8": (pa.int8(), _same), "uint64": (pa.uint64(), _same),
    "decimal(5,0)": (pa.decimal128(5, 0), _exact), "decimal(38,2)": (pa.decimal128(38, 2), _exact),
    "dictionary of int64": (pa.dictionary(pa.int8(), pa.int64()), _same), "float64": (pa.float64(), float),
}  # fmt: skip
PRICES: dict[str, Dressed] = {
    "float64": (pa.float64(), _same), "float32 and -0.0": (pa.float32(), _real), "-0.0": (pa.float64(), _real),
    "decimal(8,2)": (pa.decimal128(8, 2), _exact), "decimal(38,18)": (pa.decimal128(38, 18), _exact),
    "decimal(76,4)": (pa.decimal256(76, 4), _exact),
}  # fmt: skip
NAMES: dict[str, Dressed] = {
    "string": (pa.string(), _same), "string_view": (pa.string_view(), _same),
    "large_string": (pa.large_string(), _same), "dictionary": (pa.dictionary(pa.int32(), pa.string()), _same),
}  # fmt: skip
TIMES: dict[str, Dressed] = {
    "int64": (pa.int64(), _same),
    "beyond 2^53": (pa.int64(), lambda at: at + 2**60 + 1),
    "uint64": (pa.uint64(), lambda at: at + 2**63 - 1),
    "floats between": (pa.float64(), lambda at: at + 0.1),
    "decimal(8,2)": (pa.decimal128(8, 2), lambda at: Decimal(at) + Decimal("0.1")),
    "decimal(38,3)": (pa.decimal128(38, 3), lambda at: Decimal(at) + 2**50),
    "timestamp[ms]": (pa.timestamp("ms"), _same),
    "timestamp[us]": (pa.timestamp("us", "America/New_York"), lambda at: 1_700_000_000_000_000 + at * 1_000),
    "timestamp[ns]": (pa.timestamp("ns", "Asia/Tokyo"), lambda at: 1_700_000_000_000_000_001 + at * 1_000_000),
    "timestamp[s]": (pa.timestamp("s", "UTC"), _same),
    "date32": (pa.date32(), _same),
}


@dataclass(frozen=True)
class Dress:
    """Which type every column has."""

    id: str = "int64"
    price: str = "float64"
    name: str = "string"
    at: str = "int64"

    @property
    def schema(self) -> pa.Schema:
        """The columns of the tables."""
        return pa.schema(
            [
                ("type", NAMES[self.name][0]),
                ("id", IDS[self.id][0]),
                ("price", PRICES[self.price][0]),
                ("name", NAMES[self.name][0]),
                ("ok", pa.bool_()),
                ("at", TIMES[self.at][0]),
            ]
        )

    def table(self, rows: Rows) -> pa.Table:
        """The rows, stored in columns of these types."""
        columns = {"id": IDS[self.id], "price": PRICES[self.price], "name": NAMES[self.name], "at": TIMES[self.at]}
        arrays = []
        for column in self.schema:
            _, change = columns.get(column.name, (column.type, _same))
            values = [row.get(column.name) for row in rows]
            arrays.append(_array([None if value is None else change(value) for value in values], column.type))
        return pa.table(arrays, schema=self.schema)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return pa.array(values, pa.int64() if pa.types.is_timestamp(kind) else pa.int32()).cast(kind)
    return pa.array(values, kind)


PLAIN = Dress()
dresses = st.just(PLAIN) | st.builds(
    Dress, st.sampled_from(list(IDS)), st.sampled_from(list(PRICES)), st.sampled_from(list(NAMES)),
    st.sampled_from(list(TIMES)),
)  # fmt: skip
