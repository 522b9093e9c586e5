"""The rows that every stored journal has, as records and values, and what can be wrong with them.

Does not know which database they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from weft.core.codec import decode, decode_all
from weft.core.codec.reader import Get
from weft.core.errors import StoreError
from weft.core.events import RunResumed
from weft.core.ids import NodeId
from weft.core.ports.journal import Letter, Numbered, RunHeader
from weft.engine.journal.blobs import digest_of, named, unpacked, unsealed, verified
from weft.engine.journal.chain import START, link

Fetch = Callable[[bytes], bytes | None]
"""What is stored under a digest, if anything is."""

A_WORD = ""
"""Where the row of a letter has its node, if it is a word on a call: no end of a node settles it.

Nor does the run's, unless it succeeded: it is for whoever resumes the run.
"""

_CACHED_CHARACTERS = 1 << 23
_UNCHAINED: Final = "the records from {} to {} do not fit those before them"


class Batch(NamedTuple):
    """A row of records: the last one's number, the part that wrote the first, the sealed records.

    `chain`: see `weft.engine.journal.chain`; None in a row of a weft that had none.
    """

    seq: int
    part: int
    body: bytes
    chain: bytes | None = None


class Values:
    """Reads what was kept apart. Remembers what it read last: conversations share messages."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._texts: dict[str, str] = {}
        self._characters = 0

    def get(self, name: str) -> str:
        """The text of a name. Raises: `StoreError`."""
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
    """A header. Raises: `StoreError`."""
    header: RunHeader = decode(unsealed(stored), get)
    return header


def node_of(letter: Letter) -> NodeId | None:
    """What the row of a letter has as its node."""
    return NodeId(A_WORD) if letter.kind == "confirm" else letter.node


def letter_in(stored: bytes) -> Letter:
    """A letter, which is always in one piece. Raises: `StoreError`."""
    letter: Letter = decode(unsealed(stored))
    return letter


def records_in(batch: Batch, get: Get) -> Iterator[Numbered]:
    """The records of one batch. Raises: `StoreError`."""
    part = batch.part
    records = decode_all(unsealed(batch.body), get)
    for seq, record in enumerate(records, batch.seq - len(records) + 1):
        if isinstance(record, RunResumed):
            part = record.part
        yield Numbered(seq, part, record)


class BatchReader:
    """Reads the batches of a run, in order from behind the record `after`, and checks their chain.

    `seq` is the number of the last record that was read.
    """

    def __init__(self, get: Get, after: int = 0) -> None:
        self.seq = after
        self._get = get
        self._chain: bytes | None = None if after else START  # None: it is not known

    def problem(self, batch: Batch, records: Sequence[Numbered]) -> str:
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
            told = bool(before)
        else:
            told = batch.chain != link(before, batch.seq, batch.part, batch.body)
        return _UNCHAINED.format(seq + 1, batch.seq) if told else ""

    def read(self, batch: Batch) -> list[Numbered]:
        """The records of the next batch. Raises: `StoreError`."""
        first = self.seq + 1
        try:
            records = list(records_in(batch, self._get))
        except StoreError as error:
            told = f"the records from {first} to {batch.seq} cannot be read: {error.message}"
            raise StoreError(told, hint=error.hint) from error
        problem = self.problem(batch, records)
        if problem:
            raise StoreError(problem)
        return records

    def salvage(self, batch: Batch, problems: list[str]) -> list[Numbered]:
        """The records of the next batch that can be read; adds what is wrong to `problems`."""
        try:
            records = list(records_in(batch, self._get))
        except StoreError as error:
            told = f"the records from {self.seq + 1} to {batch.seq} cannot be read: {error.message}"
            problems.append(told)
            self.seq, self._chain = batch.seq, batch.chain
            return []
        before = self.seq
        problem = self.problem(batch, records)
        problems += [problem] if problem else []
        return [record for record in records if record.seq > before]


def wrong_values(rows: Iterable[tuple[bytes, bytes]]) -> Iterator[str]:
    """What is wrong with digests and what is stored under them, in sentences."""
    for digest, stored in rows:
        try:
            if digest_of(unpacked(stored)) != digest:
                yield f"the value {digest.hex()} does not fit its hash"
        except StoreError as error:
            yield f"the value {digest.hex()}: {error.message}"
