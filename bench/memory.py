"""The peak memory of one call: how far the resident memory of this process grew at most while the call ran."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def growth(call: Callable[[], object]) -> float:
    """The growth in megabytes; where the system cannot reset its peak, only growth beyond the highest peak so far."""
    _give_back()
    before = _resident() if _reset() else _peak()
    call()
    return max(0.0, _peak() - before)


def _give_back() -> None:
    """Return freed memory to the system: while it is still resident, its reuse would not be seen."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl does not
        if trim is not None:
            trim(0)


def _reset() -> bool:
    try:
        _CLEAR.write_text("5")  # the kernel's way to set the peak to what is resident now
    except OSError:
        return False
    return True


def _resident() -> float:
    return _field("VmRSS")


def _peak() -> float:
    if _STATUS.exists():
        return _field("VmHWM")
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _field(name: str) -> float:
    for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) / 1024
    raise LookupError(name)
