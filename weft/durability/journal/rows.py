"""The rows of every stored journal: content-addressed values, and sealed, chained batches of
records.
"""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from struct import pack
from typing import Final, NamedTuple

from weft.core.codec import decode, decode_all
from weft.core.codec.reader import Get
from weft.core.errors import StoreError
from weft.core.events import RunResumed
from weft.core.ids import NodeId
from weft.core.ports.journal import Letter, NumberedRecord, RunHeader

_DIGEST_BYTES = 24  # of SHA-256: finding a collision takes 2^96 steps
_CHECKSUM_BYTES = 4
_MIN_PACKED = 512
_MIN_PACKED_ROW = 2048  # a row is written while a run waits, and packing takes longer than that
_LARGEST = 1 << 30
_PACKED = b"x"  # the first byte of zlib's streams, and of no JSON text


class Blobs:
    """Collects values that records store separately: `bodies` by their digests."""

    def __init__(self) -> None:
        self.bodies: dict[bytes, bytes] = {}

    def keep(self, text: str) -> str:
        """Add `text`; return its name: its digest in 32 characters."""
        body = text.encode("utf-8", "surrogatepass")
        digest = digest_of(body)
        self.bodies[digest] = body
        return urlsafe_b64encode(digest).decode()


def digest_of(body: bytes) -> bytes:
    """The digest under which a body is stored."""
    return sha256(body).digest()[:_DIGEST_BYTES]


def named(name: str) -> bytes:
    """The digest in a name. Raises: `StoreError` for an invalid name."""
    try:
        digest = urlsafe_b64decode(name)
    except ValueError as error:
        raise StoreError(f"{name[:40]!r} names nothing in a journal") from error
    return digest


def packed(body: bytes, at_least: int = _MIN_PACKED) -> bytes:
    """`body` as it is stored: compressed where that pays, from `at_least` bytes on."""
    if len(body) < at_least:
        return body
    small = zlib.compress(body, 1)
    return small if len(small) * 10 < len(body) * 9 else body


def unpacked(stored: object) -> bytes:
    """The inverse of `packed`. Raises: `StoreError` for damaged or absurd bytes."""
    if not isinstance(stored, bytes):  # a damaged page gives anything for a column of bytes
        raise StoreError("a part of the journal is damaged: it has no bytes")
    if not stored.startswith(_PACKED):
        return stored
    stream = zlib.decompressobj()
    try:
        body = stream.decompress(stored, _LARGEST)
    except zlib.error as error:
        raise StoreError(f"a part of the journal is damaged: {error}") from error
    if not stream.eof:
        raise StoreError("a part of the journal is damaged: it is cut, or too large")
    return body


def sealed(text: str) -> bytes:
    """A text as it is stored in a row: with a checksum, since no digest identifies it."""
    body = text.encode("utf-8", "surrogatepass")
    if len(body) >= _MIN_PACKED_ROW:
        body = packed(body, _MIN_PACKED_ROW)
    return zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big") + body


def unsealed(stored: bytes) -> str:
    """The inverse of `sealed`. Raises: `StoreError` where the checksum does not fit."""
    body = stored[_CHECKSUM_BYTES:]
    if zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big") != stored[:_CHECKSUM_BYTES]:
        raise StoreError("a row of the journal is damaged: it does not fit its checksum")
    return as_text(unpacked(body))


def as_text(body: bytes) -> str:
    """The text of a body. Raises: `StoreError`."""
    try:
        return body.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise StoreError(f"a part of the journal is damaged: {error}") from error


def verified(name: str, stored: bytes | None) -> str:
    """The text stored under a name. Raises: `StoreError` when it is missing or damaged."""
    if stored is None:
        raise StoreError("a value is missing from the journal", hint="was its run removed?")
    body = unpacked(stored)
    if digest_of(body) != named(name):
        raise StoreError("a value in the journal is damaged: it does not fit its hash")
    return as_text(body)


START: Final = b""
"""The chain before the first batch, and before the first after batches without a chain."""
_BYTES: Final = 16


def link(before: bytes, seq: int, part: int, body: bytes) -> bytes:
    """The chain at a batch: a hash of the chain `before` it and its row."""
    return sha256(before + pack(">QI", seq, part) + body).digest()[:_BYTES]


Fetch = Callable[[bytes], bytes | None]
"""The value stored under a digest, if any."""

A_WORD = ""
"""The node in the row of a confirmation: no end of a node settles it.

The end of the run settles it only if the run succeeded: it is for the process that resumes the run.
"""

_CACHED_CHARACTERS = 1 << 23
_UNCHAINED: Final = "the records from {} to {} do not fit those before them"


class RecordBatch(NamedTuple):
    """A row of records: the last one's number, the part that wrote the first, the sealed records.

    `chain`: see `link`; None in a row of an older weft.
    """

    seq: int
    part: int
    body: bytes
    chain: bytes | None = None


class StoredValues:
    """Reads separately stored values. Caches them: conversations share messages."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._texts: dict[str, str] = {}
        self._characters = 0

    def get(self, name: str) -> str:
        """The text under a name. Raises: `StoreError`."""
        text = self._texts.get(name)
        if text is None:
            text = verified(name, self._fetch(named(name)))
            self._remember(name, text)
        return text

    def _remember(self, name: str, text: str) -> None:
        self._characters += len(text)
        if self._characters > _CACHED_CHARACTERS:
            self._texts.clear()
            self._characters = len(text)
        self._texts[name] = text


def header_in(stored: bytes, get: Get) -> RunHeader:
    """The header in a row. Raises: `StoreError`."""
    header: RunHeader = decode(unsealed(stored), get)
    return header


def node_of(letter: Letter) -> NodeId | None:
    """The node in the row of a signal."""
    return NodeId(A_WORD) if letter.kind == "confirm" else letter.node


def letter_in(stored: bytes) -> Letter:
    """The signal in a row; it contains no separate values. Raises: `StoreError`."""
    letter: Letter = decode(unsealed(stored))
    return letter


def records_in(batch: RecordBatch, get: Get) -> Iterator[NumberedRecord]:
    """The records of one batch. Raises: `StoreError`."""
    part = batch.part
    records = decode_all(unsealed(batch.body), get)
    for seq, record in enumerate(records, batch.seq - len(records) + 1):
        if isinstance(record, RunResumed):
            part = record.part
        yield NumberedRecord(seq, part, record)


class BatchReader:
    """Reads the batches of a run in order, after the record `after`, and checks their chain.

    `seq` is the number of the last record read.
    """

    def __init__(self, get: Get, after: int = 0) -> None:
        self.seq = after
        self._get = get
        self._chain: bytes | None = None if after else START  # None: unknown

    def problem(self, batch: RecordBatch, records: Sequence[NumberedRecord]) -> str:
        """What is wrong between `batch` and the one before it, in a sentence; empty: nothing."""
        seq, before = self.seq, self._chain
        self.seq, self._chain = batch.seq, batch.chain or START
        if not records or records[0].seq > seq + 1:
            upto = records[0].seq - 1 if records else batch.seq
            return f"the records from {seq + 1} to {upto} are missing"
        if before is None:
            return ""
        if records[0].seq <= seq:
            return f"the records from {records[0].seq} to {seq} are there twice"
        if batch.chain is None:
            broken = bool(before)
        else:
            broken = batch.chain != link(before, batch.seq, batch.part, batch.body)
        return _UNCHAINED.format(seq + 1, batch.seq) if broken else ""

    def read(self, batch: RecordBatch) -> list[NumberedRecord]:
        """The records of the next batch. Raises: `StoreError`."""
        first = self.seq + 1
        try:
            records = list(records_in(batch, self._get))
        except StoreError as error:
            text = f"the records from {first} to {batch.seq} cannot be read: {error.message}"
            raise StoreError(text, hint=error.hint) from error
        problem = self.problem(batch, records)
        if problem:
            raise StoreError(problem)
        return records

    def salvage(self, batch: RecordBatch, problems: list[str]) -> list[NumberedRecord]:
        """The readable records of the next batch; adds what is wrong to `problems`."""
        try:
            records = list(records_in(batch, self._get))
        except StoreError as error:
            text = f"the records from {self.seq + 1} to {batch.seq} cannot be read: {error.message}"
            problems.append(text)
            self.seq, self._chain = batch.seq, batch.chain
            return []
        before = self.seq
        problem = self.problem(batch, records)
        problems += [problem] if problem else []
        return [record for record in records if record.seq > before]


def wrong_values(rows: Iterable[tuple[object, object]]) -> Iterator[str]:
    """The stored values that do not fit their digests, in sentences."""
    for digest, stored in rows:
        if not isinstance(digest, bytes):
            yield "a value has lost its hash"
            continue
        try:
            if digest_of(unpacked(stored)) != digest:
                yield f"the value {digest.hex()} does not fit its hash"
        except StoreError as error:
            yield f"the value {digest.hex()}: {error.message}"
