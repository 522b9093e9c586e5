"""The rows that every stored journal has, as records and values, and what can be wrong with them.

Does not know which database they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from weft.core.codec import decode, decode_all
from weft.core.codec.reader import Get
from weft.core.errors import StoreError
from weft.core.events import RunResumed
from weft.core.ids import NodeId
from weft.core.ports.journal import Letter, Numbered, RunHeader
from weft.engine.journal.blobs import digest_of, named, unpacked, unsealed, verified

Fetch = Callable[[bytes], bytes | None]
"""What is stored under a digest, if anything is."""
Batch = tuple[int, int, bytes]
"""The number of its last record, the part that wrote its first, and the sealed records."""

A_WORD = ""
"""Where the row of a letter has its node, if it is a word on a call: no end of a node settles it.

Nor does the run's, unless it succeeded: it is for whoever resumes the run.
"""

_CACHED_CHARACTERS = 1 << 23


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
    last, part, stored = batch
    records = decode_all(unsealed(stored), get)
    for seq, record in enumerate(records, last - len(records) + 1):
        if isinstance(record, RunResumed):
            part = record.part
        yield Numbered(seq, part, record)


def wrong_values(rows: Iterable[tuple[bytes, bytes]]) -> Iterator[str]:
    """What is wrong with digests and what is stored under them, in sentences."""
    for digest, stored in rows:
        try:
            if digest_of(unpacked(stored)) != digest:
                yield f"the value {digest.hex()} does not fit its hash"
        except StoreError as error:
            yield f"the value {digest.hex()}: {error.message}"


def wrong_run(header: bytes, batches: Iterable[Batch], get: Get) -> Iterator[str]:
    """What is wrong with the rows of one run, in sentences."""
    try:
        header_in(header, get)
    except StoreError as error:
        yield f"its header: {error.message}"
    seq = 0
    for batch in batches:
        try:
            first = next(records_in(batch, get)).seq
            if first != seq + 1:
                yield f"record {seq + 1} is missing, or there twice"
        except (StoreError, StopIteration) as error:
            yield f"the records from {seq + 1} to {batch[0]}: {error}"
        seq = batch[0]
