"""The README's main command: recognise patterns in a generated stock stream and show what comes out."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
from rich.console import Console

import cerite

NAMES = ("MSFT", "ORCL", "CSCO", "AMAT", "INTC", "RIMM", "QQQ", "YHOO", "DELL", "IPIX")


def stock_stream(events: int, seed: int = 7) -> pa.Table:
    """A market day: BUY and SELL events of ten stocks, about 5,000 a second, prices that wander."""
    rng = np.random.default_rng(seed)
    stock = rng.integers(0, len(NAMES), events)
    price = np.round(20 + 10 * rng.random(len(NAMES))[stock] + np.cumsum(rng.normal(0, 0.01, events)), 2)
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 2, events), pa.int32()), ["BUY", "SELL"]),
            "name": pa.DictionaryArray.from_arrays(pa.array(stock, pa.int32()), NAMES),
            "price": price,
            "volume": rng.choice([100, 200, 500, 1000, 4000], events),
            "at": np.cumsum(rng.exponential(0.2, events)).astype(np.int64),
        }
    )


SEQUENCE = """
SELECT *
FROM Stock
WHERE SELL AS msft ; (BUY OR SELL) AS oracle ; BUY AS csco ; SELL AS amat
FILTER msft[name = 'MSFT' AND price > 26.0] AND oracle[name = 'ORCL' AND volume = 4000] AND
       csco[name = 'CSCO' AND volume = 1000] AND amat[name = 'AMAT' AND volume >= 1000]
WITHIN 100 milliseconds
"""
KLEENE = """
SELECT * FROM Stock
WHERE SELL AS first ; BUY+ AS bought ; SELL AS last
FILTER first[name = 'INTC'] AND bought[name = 'RIMM'] AND last[name = 'QQQ']
WITHIN 10 seconds
"""
WRONG = "SELECT * FROM Stock WHERE SELL AS x ; BUY AS y FILTER y[prize > 3] WITHIN 10 seconds"


def main() -> None:
    """Run the demo."""
    console = Console(markup=False, highlight=False, soft_wrap=True)
    events = stock_stream(1_000_000)
    query = cerite.query(SEQUENCE)
    console.print(f"{events.num_rows:,} events of a generated market day, and the query\n{SEQUENCE}")
    found = query.run(events, time="at")
    console.print(found.table(5))
    console.print(f"{found.count():,} matches, the first 5 shown. The events of the first:")
    for event in found.head(1)[0].events:
        console.print(f"  {event}")

    console.print("\nKleene patterns have astronomically many matches; they are counted without being enumerated:")
    console.print(KLEENE)
    cerite.query(KLEENE).run(events.slice(0, 300_000), time="at").count()  # compiles the kernels, once per machine
    started = time.perf_counter()
    count = cerite.query(KLEENE).run(events, time="at").count()
    console.print(f"a number of {len(str(count)):,} digits, in {time.perf_counter() - started:.2f} s")

    console.print("\nA mistake is pointed at:\n")
    try:
        cerite.query(WRONG, schema=cerite.Schema.of_arrow(events.schema))
    except cerite.CeriteError as error:
        console.print(str(error))


if __name__ == "__main__":
    main()
