"""Slow, exact, straight from the papers: the judge and symbolic register transducers.

Nothing here is needed to run a query; everything here says what running one must give.

>>> from cerite.language.ceql import parse_pattern
>>> [str(match) for match in matches(parse_pattern("A ; B"), [{"type": "A"}, {"type": "B"}])]
['[0,1] A=0, B=1']
"""

from cerite.reference.semantics import matches, measures

__all__ = ["matches", "measures"]
