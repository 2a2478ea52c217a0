"""One core: the environment of the measuring process keeps every library from starting threads."""

from __future__ import annotations

import os

_POOLS = ("NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ONE = dict.fromkeys(_POOLS, "1")


def pinned_environment() -> dict[str, str]:
    """The environment for a process that measures."""
    return {**os.environ, **ONE}


def pin_here() -> None:
    """Pin what can still be pinned after a process has started: Arrow's pools."""
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
