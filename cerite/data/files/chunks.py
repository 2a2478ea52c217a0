"""Text files in chunks of whole records, compressed or not.

Invariant: the chunks, in order, are the file's text after the header, each byte once; each is valid UTF-8 and knows
its first line's number. A chunk is larger than `CHUNK` only if one record is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from cerite.core.errors import StreamError

CHUNK = 1 << 24
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_SIGNATURES = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "zstd": b"\x28\xb5\x2f\xfd"}
Cut = Callable[[bytes], int]
"""How many bytes of the text are whole records."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where a chunk lies: byte offset in the (decompressed) text, length, and its first line's number from 1."""

    offset: int
    length: int
    line: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Text of whole records."""

    path: Path
    data: bytes
    span: Span

    @property
    def where(self) -> str:
        """The place for messages."""
        return str(self.path) if self.span.line <= 2 else f"{self.path} from line {self.span.line}"


def opened(path: Path) -> Any:
    """The file's text as bytes, decompressed by its extension."""
    compression = COMPRESSIONS.get(path.suffix.lower())
    return path.open("rb") if compression is None else pa.input_stream(str(path), compression=compression)


def packed_as(head: bytes) -> str | None:
    """How data that begins like this is compressed, if it is.

    >>> packed_as(b"\\x1f\\x8b\\x08"), packed_as(b"type,v")
    ('gzip', None)
    """
    return next((name for name, signature in _SIGNATURES.items() if head.startswith(signature)), None)


def lines_cut(data: bytes) -> int:
    """How many bytes are whole records, where records are lines.

    >>> lines_cut(b"ab\\nc")
    3
    """
    return data.rfind(b"\n") + 1


def quoted_cut(data: bytes) -> int:
    """The same where a quoted value may hold line ends: up to the last line end outside quotes.

    >>> quoted_cut(b'a,"b\\nc"\\nd,"e\\nf')
    8
    """
    end = data.rfind(b"\n")
    while end >= 0 and data.count(b'"', 0, end) % 2:
        quote = data.rfind(b'"', 0, end)
        end = data.rfind(b"\n", 0, quote)
    return end + 1


def chunks(path: Path, start: int, line: int, cut: Cut) -> Iterator[Chunk]:
    """The text from byte `start`, which is at the beginning of this line."""
    with opened(path) as file:
        _read(file, start)
        rest, offset = b"", start
        while True:
            more = _read(file, max(CHUNK, len(rest)))
            data = rest + more
            whole = cut(data) if more else len(data)
            if whole:
                yield _valid(Chunk(path, data[:whole], Span(offset, whole, line)))
                line += data.count(b"\n", 0, whole)
                offset += whole
            rest = data[whole:]
            if not more:
                return


def again(path: Path, spans: Sequence[Span]) -> Iterator[Chunk]:
    """The chunks at these places, in order; between them the file is skipped."""
    packed = path.suffix.lower() in COMPRESSIONS
    with opened(path) as file:
        at = 0
        for span in spans:
            if not packed:
                file.seek(span.offset)
            while packed and at < span.offset and (skipped := len(_read(file, min(CHUNK, span.offset - at)))):
                at += skipped
            data = _read(file, span.length)
            at = span.offset + len(data)
            if len(data) != span.length:
                raise StreamError(f"{path}: the file changed while it was read", hint="open it again")
            yield Chunk(path, data, span)


def _read(file: Any, size: int) -> bytes:
    """This many bytes; fewer only at the end. A decompressing stream may give fewer at a time."""
    data: bytes = file.read(size)
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data


def _valid(chunk: Chunk) -> Chunk:
    if not chunk.data.isascii():
        try:
            chunk.data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = chunk.span.line + chunk.data.count(b"\n", 0, error.start)
            raise StreamError(
                f"{chunk.path}, line {line}: the text is not UTF-8 (byte {chunk.data[error.start]:#04x})",
                hint="save the file as UTF-8",
            ) from error
    return chunk
