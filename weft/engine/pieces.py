"""What waits to be written to a journal. Pieces of one stream that follow each other become one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from weft.core.calls import ModelStreamed
from weft.core.events import NodeStreamed
from weft.core.ports.journal import Record

_PIECES = (NodeStreamed, ModelStreamed)
_LARGEST = 256  # pieces that become one: a text that grew by one piece each time would be copied


class Waiting:
    """Records in order. Those that `hold` takes pass `redact`, all together, before they leave."""

    def __init__(self, redact: Callable[[list[Record]], list[Record]] | None = None) -> None:
        self.records: list[Record] = []
        self._redact = redact
        self._held: list[Record] = []
        self.hold = self._held.append
        self._streams: dict[tuple[str, str], tuple[int, list[NodeStreamed | ModelStreamed]]] = {}

    def __len__(self) -> int:
        return len(self.records) + len(self._held)

    def add(self, record: Record) -> None:
        """Take the next record."""
        if self._held:
            self._let_go()
        if isinstance(record, _PIECES):
            self._add_piece(record)
        else:
            if self._streams:
                self._join_pieces()
            self.records.append(record)

    def take(self) -> list[Record]:
        """Everything, in order; nothing waits any more."""
        if self._held and not self.records:
            records, self._held = self._held, []
            self.hold = self._held.append
            return records if self._redact is None else self._redact(records)
        if self._held:
            self._let_go()
        elif self._streams:
            self._join_pieces()
        records, self.records = self.records, []
        return records

    def _let_go(self) -> None:
        if self._streams:
            self._join_pieces()
        held, self._held = self._held, []
        self.hold = self._held.append
        self.records += held if self._redact is None else self._redact(held)

    def _add_piece(self, piece: NodeStreamed | ModelStreamed) -> None:
        stream = piece.node, piece.call if isinstance(piece, ModelStreamed) else ""
        known = self._streams.get(stream)
        if known is None or len(known[1]) >= _LARGEST:
            self._streams[stream] = len(self.records), [piece]
            self.records.append(piece)
        else:
            known[1].append(piece)

    def _join_pieces(self) -> None:
        for place, pieces in self._streams.values():
            if len(pieces) > 1:
                self.records[place] = _joined(pieces)
        self._streams.clear()


def _joined(pieces: list[NodeStreamed | ModelStreamed]) -> Record:
    first = pieces[0]
    if isinstance(first, NodeStreamed):
        told = [piece for piece in pieces if isinstance(piece, NodeStreamed)]
        text = "".join(piece.text for piece in told)
        return replace(first, text=text, tokens=sum(piece.tokens for piece in told))
    deltas = [d for piece in pieces if isinstance(piece, ModelStreamed) for d in piece.deltas]
    return replace(first, deltas=tuple(deltas))
