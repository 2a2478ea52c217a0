"""Small streams to try things on: generated but realistic, with known matches planted in them.

>>> from cerite import datasets
>>> cards = datasets.load("cards", rows=1_000)
>>> cards.events.num_rows, len(cards.planted)
(1000, 1)
>>> import cerite
>>> matches = cerite.query(cards.query).run(cards.events, time=cards.time)
>>> [match.positions for match in matches] == list(cards.planted)
True

Nothing is downloaded. `rows` says how many events there are, and the same `seed` gives the same events.
"""

from cerite.datasets.loading import NAMES, Dataset, load

__all__ = ["NAMES", "Dataset", "load"]
