"""Every query that CORE prints (Figure 1, appendices D to G) is read as it stands, and printing keeps it."""

from __future__ import annotations

from collections import Counter

import pytest

from cerite.language.ceql import parse_query
from tests.corpus import paper_queries

QUERIES = paper_queries()


def test_none_is_missing() -> None:
    lengths = (3, 6, 9, 12, 24)
    for series in ("D/S", "E/H", "F/T"):
        assert all(f"{series}{length}{prime}" in QUERIES for length in lengths for prime in ("", "'"))
        assert all(f"{series}3'x{times}" in QUERIES for times in (2, 3, 4))
    counts = Counter(name.split("/")[0] for name in QUERIES)
    assert counts == {"figure1": 3, "D": 13, "E": 13, "F": 13, "G": 7}


@pytest.mark.parametrize("name", QUERIES)
def test_printing_and_parsing_again_gives_an_equal_query(name: str) -> None:
    query = parse_query(QUERIES[name])
    assert parse_query(str(query)) == query


@pytest.mark.parametrize("name", [name for name in QUERIES if name[0] in "DEF"])
def test_a_sequence_query_has_as_many_events_as_its_name_says(name: str) -> None:
    query = parse_query(QUERIES[name])
    length = int(name[3:].split("'")[0])
    assert str(query.where).count(" AS ") == length + ("'" in name) + (name[0] == "E")
    assert str(query.where).count(" ; ") == length - 1 + ("'" in name)


@pytest.mark.parametrize(
    ("appendix", "window"),
    [("D", "stock_time"), ("E", "plug_timestamp"), ("F", "dropoff_datetime"), ("G", "stock_time")],
)
def test_every_workload_is_windowed_by_its_attribute(appendix: str, window: str) -> None:
    sizes = [parse_query(text).within for name, text in QUERIES.items() if name.startswith(f"{appendix}/")]
    assert {size.attribute if size else None for size in sizes} == {window}
