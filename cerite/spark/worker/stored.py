"""The state of a shard as Spark's store takes it from Python: text.

Values travel between Python and the store as pickles, and Java's pickler writes bytes one character at a time: some 30
milliseconds per megabyte, where text takes one or two. So the state is compressed, which also makes the checkpoint
smaller, and then spelled in letters (base 64).

Invariant: `bytes_of(text_of(data)) == data`; a text that is cut or changed is refused with `SnapshotError`, here or by
the checksum of what it holds.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from zlib import crc32

import pyarrow as pa

from cerite.core.errors import SnapshotError

_SUM, _SIZES = struct.Struct("<I"), struct.Struct("<QB")  # a sum of all that follows; bytes, and zeros at the end
_HEAD = _SUM.size + _SIZES.size
_CODEC = "zstd"


def text_of(data: bytes) -> str:
    """Bytes as text.

    >>> bytes_of(text_of(b"state")), len(text_of(bytes(1_000_000))) < 1_000
    (b'state', True)
    """
    small = pa.compress(data, codec=_CODEC, asbytes=True)
    zeros = -(_HEAD + len(small)) % 3  # so that no letter has bits that mean nothing
    body = _SIZES.pack(len(data), zeros) + small + bytes(zeros)
    return b64encode(_SUM.pack(crc32(body)) + body).decode("ascii")


def bytes_of(text: str) -> bytes:
    """The bytes of a text."""
    try:
        whole = b64decode(text, validate=True)
        (checksum,), (size, zeros) = _SUM.unpack_from(whole), _SIZES.unpack_from(whole, _SUM.size)
        if checksum != crc32(memoryview(whole)[_SUM.size :]):
            raise ValueError("another sum")
        state: bytes = pa.decompress(whole[_HEAD : len(whole) - zeros], size, codec=_CODEC, asbytes=True)
    except (ValueError, struct.error, OSError) as error:  # Arrow's own errors are among these
        raise SnapshotError("the state of this shard is damaged: it cannot be read") from error
    return state
