"""Run state as bytes: a versioned header, a checksum, a JSON part for names and big integers, and raw arrays.

Layout: `MAGIC`, version (u16), BLAKE2b-128 of the rest, length of the JSON (u32), JSON, arrays one after the other.

Invariant: `unpack(pack(kind, meta, arrays), kind)` gives back `meta` and equal arrays; anything else, a cut or changed
byte, another version, another kind of state or another automaton, is refused with `SnapshotError`.
"""

import hashlib
import json
import math
import struct
from typing import Any

import numpy as np

from cerite.automaton import Automaton
from cerite.core.arrays import Arrays
from cerite.core.errors import SnapshotError

MAGIC = b"CERITE\x00S"
VERSION = 6
_DIGEST = 16


def fingerprint(automaton: Automaton, **options: object) -> str:
    """What must be equal for a snapshot to fit: the automaton, except for its opaque conditions, and the options."""
    shape = f"({automaton.outline}, {sorted(options.items())!r})"
    return hashlib.blake2b(shape.encode(), digest_size=_DIGEST).hexdigest()


def pack(kind: str, meta: dict[str, Any], arrays: Arrays) -> bytes:
    """One snapshot."""
    shapes = {name: (a.dtype.str, a.shape) for name, a in arrays.items()}
    head = json.dumps({"kind": kind, "meta": meta, "arrays": shapes}).encode()
    parts = [struct.pack("<I", len(head)), head, *(np.ascontiguousarray(a).tobytes() for a in arrays.values())]
    body = b"".join(parts)
    return MAGIC + struct.pack("<H", VERSION) + hashlib.blake2b(body, digest_size=_DIGEST).digest() + body


def kind_of(data: bytes) -> str:
    """What a snapshot is of; `unpack` says whether it is whole."""
    start = len(MAGIC) + 2 + _DIGEST
    try:
        (length,) = struct.unpack_from("<I", data, start)
        return str(json.loads(data[start + 4 : start + 4 + length])["kind"])
    except (struct.error, ValueError, KeyError, TypeError):
        return ""


def unpack(data: bytes, kind: str, mine: str | None = None) -> tuple[dict[str, Any], Arrays]:
    """The meta part and the arrays of a snapshot; one whose `fingerprint` is not `mine` is refused."""
    start = len(MAGIC) + 2 + _DIGEST
    if len(data) < start + 4 or data[: len(MAGIC)] != MAGIC:
        raise SnapshotError("these bytes are not a snapshot")
    (version,) = struct.unpack_from("<H", data, len(MAGIC))
    if version != VERSION:
        raise SnapshotError(
            f"the snapshot has version {version}, this program reads version {VERSION}",
            hint="restore it with the Cerite that took it, or read the events again",
        )
    body = memoryview(data)[start:]
    if hashlib.blake2b(body, digest_size=_DIGEST).digest() != data[start - _DIGEST : start]:
        raise SnapshotError("the snapshot is damaged: its checksum does not match")
    (length,) = struct.unpack_from("<I", body)
    head = json.loads(bytes(body[4 : 4 + length]))
    if head["kind"] != kind:
        raise SnapshotError(f"this is a snapshot of a {head['kind']}, not of a {kind}")
    if mine is not None and head["meta"]["fingerprint"] != mine:
        raise SnapshotError("the snapshot was taken with another query")
    arrays: Arrays = {}
    place = 4 + length
    for name, (dtype, shape) in head["arrays"].items():
        count = math.prod(shape)
        arrays[name] = np.frombuffer(body, np.dtype(dtype), count, place).reshape(shape).copy()
        place += count * np.dtype(dtype).itemsize
    return head["meta"], arrays
