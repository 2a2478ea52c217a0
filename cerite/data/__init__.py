"""Where events come from: every kind of data becomes one `Source` of Arrow batches.

`open_events` takes tables, frames, readers, files and plain dictionaries. Whatever comes in, the same rules hold on the
way out: rows keep their order, a column has one Arrow type in all batches, strings are dictionary-encoded, and what
cannot be read is an error that names the place, never a missing row or value.

>>> from cerite.data import open_events
>>> open_events([{"type": "BUY", "price": 12.5}, {"type": "SELL"}]).table().to_pylist()
[{'type': 'BUY', 'price': 12.5}, {'type': 'SELL', 'price': None}]
"""

from cerite.data.open import open_events
from cerite.data.source import Source

__all__ = ["Source", "open_events"]
