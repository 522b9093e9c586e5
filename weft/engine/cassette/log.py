"""The calls of a run under way: those of its earlier parts, and what this part must not repeat."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, get_args

from weft.core.calls import CallEvent, CallId, ModelTold, ToolsListed
from weft.core.codec import opaque_in
from weft.core.events import NodeFinished, NodeStarted, RunFinished
from weft.core.ids import NodeId, RunId, in_any_attempt
from weft.core.ports.journal import Record
from weft.core.redaction import Redactor
from weft.engine.cassette.book import CallIds, Confirmation, Known
from weft.engine.cassette.digest import canonical_text
from weft.engine.cassette.memory import CallMemory, OnceMemory
from weft.engine.place import Place

Write = Callable[[CallEvent, bool], Awaitable[None]]


class CallLog:
    """Implements `CallBook` over `write`, which takes an event and whether it has to be durable.

    now_s      seconds of the run
    past       the records of its earlier parts, redacted as they are kept
    confirmed  what a person says of calls that nobody knows the end of, by node, or as `NODE@CALL`
    log        shows people a line about a node
    unsure     the record has lost calls that nobody knows
    """

    def __init__(
        self,
        run: RunId,
        now_s: Callable[[], float],
        write: Write,
        *,
        past: Iterable[Record] = (),
        confirmed: Mapping[str, Confirmation] | None = None,
        redactor: Redactor | None = None,
        log: Callable[[NodeId, str], None] | None = None,
        unsure: bool = False,
    ) -> None:
        self._run = run
        self._unsure = unsure
        self._now_s = now_s
        self._write = write
        self._confirmed = {_anywhere(where): said for where, said in (confirmed or {}).items()}
        self._redactor = redactor or Redactor()
        self._log = log
        self._ids = CallIds()
        self._past = CallMemory()
        self._once = OnceMemory()
        self._past_once = OnceMemory()
        self._told: set[str] = set()
        self._unrecalled: set[NodeId] = set()
        self._recalled: set[tuple[NodeId, int, CallId]] = set()
        for record in past:
            self._remember(record)

    @property
    def run(self) -> RunId:
        return self._run

    @property
    def ids(self) -> CallIds:
        return self._ids

    @property
    def redactor(self) -> Redactor:
        return self._redactor

    @property
    def unsure(self) -> bool:
        return self._unsure

    @property
    def now_s(self) -> float:
        return self._now_s()

    @property
    def recalled(self) -> int:
        """How many calls were not made because their answer is in the record."""
        return len(self._recalled)

    def known(self, place: Place, call: CallId) -> Known | None:
        found = self._past.find(place.node, place.attempt, call)
        if found is not None and found.succeeded:
            self._recalled.add((place.node, place.attempt, call))
        return self._redactor.restore(found)

    def once(self, node: NodeId, call: CallId) -> Known | None:
        here = self._once.find(node, call)
        if here is not None:
            return here
        found = self._past_once.find(node, call)
        if found is not None and found.succeeded:
            self._recalled.add((node, 0, call))
        return self._redactor.restore(found)

    def confirmed(self, node: NodeId, call: CallId) -> Confirmation | None:
        if self._once.find(node, call) is not None:
            return None  # what was said is about an earlier call
        place = in_any_attempt(node)
        return self._confirmed.get(f"{place}@{call}") or self._confirmed.get(place)

    def told(self, model: str, question: tuple[Any, ...]) -> bool:
        asked = hashlib.sha256(
            canonical_text([model, question]).encode("utf-8", "surrogatepass")
        ).hexdigest()
        if asked in self._told:
            return True
        self._told.add(asked)
        return False

    def log(self, node: NodeId, text: str) -> None:
        if self._log is not None:
            self._log(node, text)

    async def write(self, event: CallEvent, durable: bool = False) -> None:
        self._once.add(event)
        await self._write(event, durable)

    def _remember(self, record: Record) -> None:
        if isinstance(record, NodeStarted):
            if record.attempt == 1 and not record.digest:
                self._unrecalled.add(record.node)
        elif isinstance(record, NodeFinished):
            self._ended(record)
        elif isinstance(record, RunFinished):
            for node in self._unrecalled:
                self._past.forget(node)
        elif isinstance(record, ModelTold):
            self.told(record.model, self._redactor.restore(record.question))
        elif isinstance(record, ToolsListed):
            self.told(f"tools:{record.source}", (record.specs,))
        elif isinstance(record, get_args(CallEvent)):
            self._past.add(record)
            self._past_once.add(record)

    def _ended(self, record: NodeFinished) -> None:
        # It is recalled as a whole; and where it is worked on again, that is done afresh. But while
        # the run goes on, what is never recalled is done again as it was done: so is a node with a
        # value that the record has no more than a likeness of.
        if opaque_in(record.outcome.value) is not None:
            self._unrecalled.add(record.node)
        if record.node not in self._unrecalled or not record.outcome.ok:
            self._past.forget(record.node)


def _anywhere(where: str) -> str:
    node, at, call = where.partition("@")
    return f"{in_any_attempt(NodeId(node))}{at}{call}"
