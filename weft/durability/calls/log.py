"""The calls of a run under way: those of its earlier parts, and what this part must not repeat."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from typing import Any, Final, get_args

from weft.core.calls import CallEvent, CallId, ModelTold, ToolsListed
from weft.core.codec import opaque_in
from weft.core.events import NodeFinished, NodeStarted, RunFinished
from weft.core.ids import NodeId, RunId, in_any_attempt, matches, stem
from weft.core.ports.journal import Record
from weft.core.redaction import Redactor
from weft.core.values import JsonSchema
from weft.durability.calls.digest import CallDigests
from weft.durability.calls.history import (
    CallIds,
    CallMemory,
    Confirmation,
    OnceMemory,
    RecordedCall,
)
from weft.engine.scheduler.effects import CallSite, share_decider

Write = Callable[[CallEvent, bool], Awaitable[None] | None]

_HIDES_NOTHING: Final = Redactor()


class CallLog:
    """The record of a run's calls over `write`: it takes an event and whether it must be durable.

    What `write` returns is awaited, unless it is None. Without `write` nothing is kept: what must
    not be repeated is known to this process alone.

    now_s      seconds of the run
    past       the records of its earlier parts, redacted as they are kept
    confirmed  what a person says of calls that nobody knows the end of, by node or as `NODE@CALL`;
               by a pattern of nodes, of calls that were made before and have moved there
    gone       nodes that the program had in earlier parts and no longer has, without their counts
    log        shows people a line about a node
    unsure     a call that must not be repeated may have been made without being known
    misfit     why a value does not fit a schema; without it, what people say is not checked
    """

    def __init__(
        self,
        run: RunId,
        now_s: Callable[[], float],
        write: Write | None,
        *,
        past: Iterable[Record] = (),
        confirmed: Mapping[str, Confirmation] | None = None,
        gone: Container[str] = (),
        redactor: Redactor | None = None,
        log: Callable[[NodeId, str], None] | None = None,
        unsure: bool = False,
        misfit: Callable[[object, JsonSchema], str | None] | None = None,
    ) -> None:
        self.run = run
        self.unsure = unsure
        self._misfit = misfit
        self._now_s = now_s
        self._write = write
        self.kept = write is not None
        self._confirmed = {_anywhere(where): said for where, said in (confirmed or {}).items()}
        self._spoken: dict[str, str] = {}
        self._gone = gone
        self.redactor = redactor or _HIDES_NOTHING
        self.digests = CallDigests(self.redactor)
        self._log = log
        self.ids = CallIds()
        self._past = CallMemory()
        self._once = OnceMemory()
        self._past_once = OnceMemory()
        self._asked: dict[CallSite, set[CallId]] = {}
        self._told: set[str] = set()
        self._unrecalled: set[NodeId] = set()
        self._recalled: set[tuple[NodeId, int, CallId]] = set()
        self._is_later = False
        """Whether this part of the run has one before it."""
        for record in past:
            self._is_later = True
            self._remember(record)

    @property
    def now_s(self) -> float:
        """Seconds of the run, those of its earlier parts included."""
        return self._now_s()

    @property
    def recalled(self) -> int:
        """How many calls were not made because their answer is in the record."""
        return len(self._recalled)

    def known(self, place: CallSite, call: CallId) -> RecordedCall | None:
        """What an earlier part of the run knows of a call in the same attempt; the latest."""
        found = self._past.find(place.node, place.attempt, call) if self._is_later else None
        if found is None:
            return None
        if found.succeeded:
            self._recalled.add((place.node, place.attempt, call))
        return self.redactor.restore(found)

    def once(self, node: NodeId, call: CallId) -> RecordedCall | None:
        """The latest of all that is known of a call that must not be repeated, in any attempt."""
        here = self._once.find(node, call)
        if here is not None:
            return here
        found = self._past_once.find(node, call)
        if found is not None and found.succeeded:
            self._recalled.add((node, 0, call))
        return self.redactor.restore(found)

    def replaced(self, place: CallSite, call: CallId) -> RecordedCall | None:
        """A call that acted here in another attempt or part, and that this attempt has not made.

        It must not be repeated, and `call`, which nobody has made before, may be the same intent.
        """
        asked = self._asked.setdefault(place, set())
        asked.add(call)
        here = {known.called.call: known for known in self._once.at(place.node)}
        for known in (*self._past_once.at(place.node), *here.values()):
            made = known.called
            again = made.call in asked or known is not here.get(made.call, known)
            ours = made.call in here and (made.node, made.attempt) == (place.node, place.attempt)
            if not again and not ours and known.has_acted:
                return self.redactor.restore(known)
        return self.redactor.restore(self._moved(call))

    def superseded(self, place: CallSite, call: CallId) -> bool:
        """Whether another call has acted since this one did nothing, chosen in its place."""
        here = self._once.find(place.node, call)
        if here is not None and here.called.node == place.node:
            return False  # the node tries again, and nobody has chosen another since
        past = () if here is not None else self._past_once.since(place.node, call)
        others = (*past, *self._once.since(place.node, call))
        return any(o.has_acted and share_decider(place.node, o.called.node) for o in others)

    def _moved(self, call: CallId) -> RecordedCall | None:
        """The same call of a node that is gone: the program has moved it."""
        content = call.partition("#")[0]
        for known in self._past_once.everything():
            made = known.called
            if made.call.partition("#")[0] == content and stem(made.node) in self._gone:
                return known if known.has_acted else None
        return None

    def confirmed(
        self, node: NodeId, call: CallId, other: RecordedCall | None = None
    ) -> Confirmation | None:
        """What a person said of a call whose end nobody knows, or of `other`, made in its place.

        A word that a call is done holds for one call.
        """
        if self._once.find(node, call) is not None:
            return None  # what was said is about an earlier call
        place = in_any_attempt(node)
        here = f"{place}@{call}"
        wheres = [here, place]
        if other is not None:
            wheres.append(other.where)
            wheres += [where for where in self._confirmed if "*" in where and matches(where, node)]
        where = next((where for where in wheres if where in self._confirmed), None)
        if where is None:
            return None
        said, about = self._confirmed[where], where if other is None else other.where
        first = self._spoken.setdefault(about, here) if said.kind == "done" else here
        return said if first == here else None

    def misfit(self, value: Any, schema: JsonSchema) -> str | None:
        """Why what a person says that a call returned cannot be its result; None: it can."""
        return None if self._misfit is None else self._misfit(value, schema)

    def told(self, model: str, question: tuple[Any, ...]) -> bool:
        """Whether an answer to `question` is in the record already; from now on it is."""
        asked = self.digests.question(model, question)
        if asked in self._told:
            return True
        self._told.add(asked)
        return False

    def log(self, node: NodeId, text: str) -> None:
        """Show people a line."""
        if self._log is not None:
            self._log(node, text)

    def put(self, event: CallEvent, durable: bool = False) -> Awaitable[None] | None:
        """As `write`, without a coroutine where there is nothing to wait for: None then."""
        if durable:  # as all calls that must not be repeated are
            self._once.add(event)
        return None if self._write is None else self._write(event, durable)

    async def write(self, event: CallEvent, durable: bool = False) -> None:
        """Add to the record. `durable`: it is not lost from here on, whatever happens.

        Raises: `StoreError`.
        """
        waiting = self.put(event, durable)
        if waiting is not None:
            await waiting

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
            self.told(record.model, self.redactor.restore(record.question))
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
