"""The benchmark suite: `python -m bench` measures Cerite on the workloads of the CORE paper (docs/benchmarks.md).

It uses one thread, unless CERITE_THREADS says otherwise or a benchmark is about threads.
"""

import os

os.environ.setdefault("CERITE_THREADS", "1")
