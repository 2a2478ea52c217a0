"""The engine-independent test corpus: streams, queries and the matches they must give (see README.md)."""

from tests.corpus.loader import Case, load, paper_queries

__all__ = ["Case", "load", "paper_queries"]
