"""Dataflow operators as in *Aggregates are all you need* (Gulisano, Margara, DEBS 2024), in plain Python.

One stateful operator, the Aggregate over event-time windows; S&P, T-CER and R-CER are compositions of it and nothing
else (Listings 3-5), and run Cerite's queries over disordered, keyed streams. They are exact and meant to be read: the
reference for the physical plans on Spark. docs/dataflow.md shows them at work.
"""

from cerite.dataflow.aggregate import Aggregate, Instance, Windows, own_key, same_key
from cerite.dataflow.event_time import (
    DataflowError,
    Element,
    StreamTuple,
    Watermark,
    merged,
    tuples_of,
    with_watermarks,
)
from cerite.dataflow.operators import Chain, Filter, Map, Operator
from cerite.dataflow.r_cer import arrival, r_cer
from cerite.dataflow.recognition import QueryCondition, QueryRule, Recognised
from cerite.dataflow.sort_preprocess import every_one, first_only, sort_preprocess
from cerite.dataflow.t_cer import chunks, t_cer

__all__ = [
    "Aggregate", "Chain", "DataflowError", "Element", "Filter", "Instance", "Map", "Operator", "QueryCondition",
    "QueryRule", "Recognised", "StreamTuple", "Watermark", "Windows", "arrival", "chunks", "every_one", "first_only",
    "merged", "own_key", "r_cer", "same_key", "sort_preprocess", "t_cer", "tuples_of", "with_watermarks",
]  # fmt: skip
