"""The calls of a running run: those of its earlier parts, and those that must not be repeated."""

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
    """Writes a run's calls to `write`, which takes an event and whether it must be durable.

    The result of `write` is awaited, unless it is None. Without `write` nothing is recorded: only
    this process remembers the calls that must not be repeated.

    now_s      seconds of the run
    past       the records of its earlier parts, redacted as they are stored
    confirmed  a person's statements on calls with an unknown end, by node or as `NODE@CALL`; by a
               pattern of nodes, on earlier calls that have moved there
    gone       nodes that the program had in earlier parts and no longer has, without their counts
    log        logs a line about a node for the user
    unsure     a call that must not be repeated may have been made without being recorded
    misfit     why a value does not fit a schema; without it, people's statements are not checked
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
        self._confirmed = {_anywhere(where): word for where, word in (confirmed or {}).items()}
        self._used_for: dict[str, str] = {}
        self._gone = gone
        self.redactor = redactor or _HIDES_NOTHING
        self.digests = CallDigests(self.redactor)
        self._log = log
        self.ids = CallIds()
        self._past = CallMemory()
        self._once = OnceMemory()
        self._past_once = OnceMemory()
        self._asked: dict[CallSite, set[CallId]] = {}
        self._answered: set[str] = set()
        self._unrecalled: set[NodeId] = set()
        self._recalled: set[tuple[NodeId, int, CallId]] = set()
        self._is_later = False
        """Whether this part of the run has an earlier one."""
        for record in past:
            self._is_later = True
            self._remember(record)

    @property
    def now_s(self) -> float:
        """Seconds of the run, including those of its earlier parts."""
        return self._now_s()

    @property
    def recalled(self) -> int:
        """The number of calls that were not made because their answer is in the record."""
        return len(self._recalled)

    def known(self, place: CallSite, call: CallId) -> RecordedCall | None:
        """The latest record, in an earlier part of the run, of a call in the same attempt."""
        found = self._past.find(place.node, place.attempt, call) if self._is_later else None
        if found is None:
            return None
        if found.succeeded:
            self._recalled.add((place.node, place.attempt, call))
        return self.redactor.restore(found)

    def once(self, node: NodeId, call: CallId) -> RecordedCall | None:
        """The latest record of a call that must not be repeated, in any attempt."""
        here = self._once.find(node, call)
        if here is not None:
            return here
        found = self._past_once.find(node, call)
        if found is not None and found.succeeded:
            self._recalled.add((node, 0, call))
        return self.redactor.restore(found)

    def replaced(self, place: CallSite, call: CallId) -> RecordedCall | None:
        """A call that acted here in another attempt or part, and that this attempt has not made.

        It must not be repeated, and the new `call` may be the same intent.
        """
        asked = self._asked.setdefault(place, set())
        asked.add(call)
        here = {own.called.call: own for own in self._once.at(place.node)}
        for known in (*self._past_once.at(place.node), *here.values()):
            made = known.called
            again = made.call in asked or known is not here.get(made.call, known)
            ours = made.call in here and (made.node, made.attempt) == (place.node, place.attempt)
            if not again and not ours and known.has_acted:
                return self.redactor.restore(known)
        return self.redactor.restore(self._moved(call))

    def superseded(self, place: CallSite, call: CallId) -> bool:
        """Whether another call, chosen in its place, has acted since this one did nothing."""
        here = self._once.find(place.node, call)
        if here is not None and here.called.node == place.node:
            return False  # the node tries again, and no other call was chosen since
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
        """A person's statement on a call with an unknown end, or on `other`, made in its place.

        A statement that a call is done holds for one call.
        """
        if self._once.find(node, call) is not None:
            return None  # the statement is on an earlier call
        place = in_any_attempt(node)
        here = f"{place}@{call}"
        wheres = [here, place]
        if other is not None:
            wheres.append(other.where)
            wheres += [where for where in self._confirmed if "*" in where and matches(where, node)]
        where = next((where for where in wheres if where in self._confirmed), None)
        if where is None:
            return None
        word, about = self._confirmed[where], where if other is None else other.where
        first = self._used_for.setdefault(about, here) if word.kind == "done" else here
        return word if first == here else None

    def misfit(self, value: Any, schema: JsonSchema) -> str | None:
        """Why a confirmed `value` cannot be a call's result; None: it can."""
        return None if self._misfit is None else self._misfit(value, schema)

    def is_answered(self, model: str, question: tuple[Any, ...]) -> bool:
        """Whether the record has an answer to `question`; from now on it counts as having one."""
        key = self.digests.question(model, question)
        if key in self._answered:
            return True
        self._answered.add(key)
        return False

    def log(self, node: NodeId, text: str) -> None:
        """Log a line for the user."""
        if self._log is not None:
            self._log(node, text)

    def put(self, event: CallEvent, durable: bool = False) -> Awaitable[None] | None:
        """As `write`, but returns None instead of a coroutine where nothing is to be awaited."""
        if durable:  # as all calls are that must not be repeated
            self._once.add(event)
        return None if self._write is None else self._write(event, durable)

    async def write(self, event: CallEvent, durable: bool = False) -> None:
        """Add to the record. `durable`: on return it cannot be lost.

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
            self.is_answered(record.model, self.redactor.restore(record.question))
        elif isinstance(record, ToolsListed):
            self.is_answered(f"tools:{record.source}", (record.specs,))
        elif isinstance(record, get_args(CallEvent)):
            self._past.add(record)
            self._past_once.add(record)

    def _ended(self, record: NodeFinished) -> None:
        # An ended node is restored as a whole, or done afresh. But while the run continues, a node
        # that is never restored repeats its recorded calls: it, and a node whose value is recorded
        # only in a lossy form, keeps them.
        if opaque_in(record.outcome.value) is not None:
            self._unrecalled.add(record.node)
        if record.node not in self._unrecalled or not record.outcome.ok:
            self._past.forget(record.node)


def _anywhere(where: str) -> str:
    node, at, call = where.partition("@")
    return f"{in_any_attempt(NodeId(node))}{at}{call}"
