"""A recorded run as a cassette: finds the recorded call that answers a replayed one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, get_args

from weft.core.calls import (
    CallEvent,
    CallId,
    ModelAnswered,
    ModelCalled,
    ModelTold,
    ToolCalled,
    ToolReturned,
    ToolsListed,
)
from weft.core.errors import CassetteMiss, EffectUnknown
from weft.core.events import (
    GraphGrew,
    HumanAsked,
    JoinDecided,
    NodeFinished,
    NodeRerouted,
    NodeRetrying,
    NodeStarted,
    RunFinished,
)
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest
from weft.core.ports.journal import Record
from weft.core.redaction import Redactor
from weft.core.values import ToolSpec
from weft.durability.calls.digest import CallDigests
from weft.durability.calls.drift import Drift, model_changes, tool_changes
from weft.durability.calls.history import CallIds, CallMemory, OnceMemory, RecordedCall
from weft.durability.calls.once import unknown
from weft.engine.scheduler.effects import CallSite

_CLOSE_S: Final = 0.05
_ACTIONS: Final = (
    *(ModelCalled, ToolCalled, NodeStarted, GraphGrew, JoinDecided),
    *(HumanAsked, NodeRetrying, NodeRerouted, RunFinished),
)
"""Actions of the program. That a node ends well is not one: it is the end of its call."""
_Ended = ModelAnswered | ToolReturned
_Key = tuple[NodeId, int, str]


class Due(NamedTuple):
    """When the end of a call is to be given: its place among all ends and the number of its group,
    both in the order of the record, and the second of the run."""

    order: int
    group: int
    at_s: float


class AnswerGroups:
    """Groups answers that arrived together; `due` is when each is to be given.

    The second is that of the last answer of the group, at most 50 ms after the first. Takes the
    records of a run in order.
    """

    def __init__(self) -> None:
        self._due: dict[_Key, Due] = {}
        self._open: list[_Key] = []
        self._group = 0
        self._opened_s = 0.0

    def take(self, record: Record) -> None:
        """Add the next record."""
        if isinstance(record, _Ended):
            if not self._open or record.at_s - self._opened_s > _CLOSE_S:
                self._open, self._opened_s = [], record.at_s
                self._group += 1
            self._due[_key(record)] = Due(len(self._due), self._group, record.at_s)
            self._open.append(_key(record))
            for key in self._open:
                self._due[key] = self._due[key]._replace(at_s=record.at_s)
        elif isinstance(record, _ACTIONS) or _failed(record):
            self._open = []

    def due(self, ended: _Ended) -> Due:
        """When `ended` is to be given."""
        return self._due[_key(ended)]


def _failed(record: Record) -> bool:
    return isinstance(record, NodeFinished) and not record.outcome.ok


def _key(ended: _Ended) -> _Key:
    return ended.node, ended.attempt, ended.call


class RefusedCalls:
    """Finds calls that were refused; `at_s` is when. Takes the records of a run in order.

    The record has nothing of a refused call: its node began once more, made none, and ended.
    """

    def __init__(self) -> None:
        self._order = 0
        self._begun: dict[tuple[NodeId, int], tuple[int, float]] = {}
        self._ended: dict[NodeId, int] = {}
        self._called: dict[tuple[NodeId, int, str], int] = {}

    def take(self, record: Record) -> None:
        """Add the next record."""
        self._order += 1
        match record:
            case NodeStarted(node=node, attempt=attempt, at_s=at_s):
                self._begun[node, attempt] = self._order, at_s
            case NodeFinished(node=node):
                self._ended[node] = self._order
            case ToolCalled(effect="once"):
                self._called[record.node, record.attempt, record.call] = self._order

    def at_s(self, place: CallSite, known: RecordedCall) -> float | None:
        """The second of the run at which `known`, called at `place`, was refused; else None."""
        called, ended = known.called, known.ended
        order = self._called.get((called.node, called.attempt, called.call))
        begun, begun_s = self._begun.get((place.node, place.attempt), (0, 0.0))
        settled = isinstance(ended, ToolReturned) and ended.done != "unknown"
        if order is None or settled or not order < begun < self._ended.get(place.node, 0):
            return None
        return begun_s


_Kind = type[ToolCalled] | type[ModelCalled]
_MISSING: Final = object()


class Cassette:
    """The recorded calls of a run, each to be played once.

    strict      a call that differs from its record is a miss; otherwise the next recorded call of
                the same attempt, tool or model answers it, and `drifts` has the differences
    on_drift    receives each drift as it is found
    by_content  an equal call of any node answers a call, too: the program may have been changed
    """

    def __init__(
        self,
        records: Iterable[Record],
        *,
        strict: bool = False,
        redactor: Redactor | None = None,
        on_drift: Callable[[Drift], None] | None = None,
        by_content: bool = False,
    ) -> None:
        self.drifts: list[Drift] = []
        self._by_content = by_content
        self._contents: dict[str, list[RecordedCall]] | None = None
        self.ended_s = 0.0
        self._strict = strict
        self._redactor = redactor or Redactor()
        self._on_drift = on_drift
        self._digests = CallDigests(self._redactor)
        self._calls = CallMemory()
        self._once_calls = OnceMemory()
        self._answers: dict[str, Any] = {}
        self._listed: dict[str, tuple[ToolSpec, ...]] = {}
        self._ids = CallIds()
        self._answer_groups = AnswerGroups()
        self._refused_calls = RefusedCalls()
        self._played: set[tuple[NodeId, int, CallId]] = set()
        for record in records:
            self._take(record)

    def tool(self, place: CallSite, name: str, arguments: Mapping[str, Any]) -> RecordedCall:
        """The recorded call of a tool. Raises: `CassetteMiss`."""
        call = self._ids.tool(place, self._digests.tool(name, arguments))
        found = self._exact(place, call) or self._once(place, call) or self._equal(call)
        if found is None:
            shown = self._redactor.redact(arguments)
            found = self._other(
                place,
                f"the tool {name}",
                ToolCalled,
                lambda called: called.tool == name,
                lambda called: tool_changes(called, name, shown),
            )
        return self._played_now(found)

    def model(self, place: CallSite, name: str, request: ModelRequest) -> RecordedCall:
        """The recorded call of a model. Raises: `CassetteMiss`."""
        call = self._ids.model(place, self._digests.model(name, request))
        found = self._exact(place, call) or self._equal(call)
        if found is None:
            shown = self._redactor.redact(request)
            found = self._other(
                place,
                f"the model {name}",
                ModelCalled,
                lambda called: called.model == name,
                lambda called: model_changes(called, name, shown),
            )
        return self._played_now(found)

    def answer_to(self, model: str, question: tuple[Any, ...]) -> Any:
        """The recorded answer of the client of `model`. Raises: `CassetteMiss`."""
        answer = self._answers.get(self._digests.question(model, question), _MISSING)
        if answer is _MISSING:
            text = f"what the model {model} says to `{question[0]}` is not in the record"
            hint = "it was not asked for then, or it held a secret"
            raise CassetteMiss(text, hint=hint)
        return answer

    def has_answer(self, model: str, question: tuple[Any, ...]) -> bool:
        """Whether `answer_to` has an answer."""
        return self._digests.question(model, question) in self._answers

    def listed(self, source: str) -> tuple[ToolSpec, ...] | None:
        """The recorded tools of the server `source`; None where they were not listed."""
        return self._listed.get(source)

    def due(self, ended: ModelAnswered | ToolReturned) -> Due:
        """When the end of a call is to be given."""
        return self._answer_groups.due(ended)

    def left(self) -> tuple[Drift, ...]:
        """Finished recorded calls that have not been played: the program no longer makes them."""
        return tuple(
            Drift(
                known.called.node, known.called.attempt, _what(known), ("it is not asked any more",)
            )
            for known in self._calls.everything()
            if known.ended is not None and _place(known) not in self._played
        )

    def refused(self, place: CallSite, known: RecordedCall) -> tuple[float, EffectUnknown] | None:
        """The time and error of a call that was refused, since its earlier end was unknown."""
        at_s = self._refused_calls.at_s(place, known)
        if at_s is None or not isinstance(known.called, ToolCalled):
            return None
        return at_s, unknown(known, place.node, known.called.tool, self._redactor)

    def _take(self, record: Record) -> None:
        self.ended_s = max(self.ended_s, record.at_s)
        self._answer_groups.take(record)
        self._refused_calls.take(record)
        if isinstance(record, ModelTold):
            question = self._redactor.restore(record.question)
            key = self._digests.question(record.model, question)
            self._answers[key] = self._redactor.restore(record.answer)
        elif isinstance(record, ToolsListed):
            self._listed[record.source] = record.specs
        elif isinstance(record, get_args(CallEvent)):
            self._calls.add(record)
            self._once_calls.add(record)

    def _exact(self, place: CallSite, call: CallId) -> RecordedCall | None:
        return self._calls.find(place.node, place.attempt, call)

    def _once(self, place: CallSite, call: CallId) -> RecordedCall | None:
        """A call that was not repeated in a later attempt."""
        return self._once_calls.find(place.node, call)

    def _equal(self, call: CallId) -> RecordedCall | None:
        """A finished call of any node with the content of `call`: the one of its number, or the
        last.
        """
        if not self._by_content:
            return None
        if self._contents is None:
            self._contents = {}
            for known in self._calls.everything():
                if known.ended is not None:
                    content = known.called.call.rpartition("#")[0]
                    self._contents.setdefault(content, []).append(known)
        content, _, number = call.rpartition("#")
        found = self._contents.get(content, [])
        return found[min(int(number), len(found) - 1)] if found else None

    def _other(
        self,
        place: CallSite,
        what: str,
        kind: _Kind,
        same: Callable[[Any], bool],
        changes: Callable[[Any], tuple[str, ...]],
    ) -> RecordedCall:
        """The next unplayed call of the kind. Raises: `CassetteMiss`."""
        left = [
            known
            for known in self._calls.of(place.node, place.attempt)
            if isinstance(known.called, kind) and _place(known) not in self._played
        ]
        if not left:
            raise self._miss(place, what, kind)
        known = next((known for known in left if same(known.called)), left[0])
        changed = changes(known.called) or ("it is called more often than in the record",)
        drift = Drift(place.node, place.attempt, what, changed)
        if self._strict:
            hint = "without --strict the recorded answer is given, and the difference reported"
            raise CassetteMiss(f"{what} is asked otherwise: {'; '.join(drift.changes)}", hint=hint)
        self.drifts.append(drift)
        if self._on_drift is not None:
            self._on_drift(drift)
        return known

    def _miss(self, place: CallSite, what: str, kind: _Kind) -> CassetteMiss:
        made = [k for k in self._calls.of(place.node, place.attempt) if isinstance(k.called, kind)]
        kinds = "tools" if kind is ToolCalled else "models"
        had = f"{len(made)} calls of {kinds}, all of them played" if made else f"no call of {kinds}"
        return CassetteMiss(
            f"{what} is called, but attempt {place.attempt} has {had} in the record",
            hint="run what changed live: weft replay RUN --from NODE",
        )

    def _played_now(self, known: RecordedCall) -> RecordedCall:
        self._played.add(_place(known))
        if known.is_lost:
            called = known.called.tool if isinstance(known.called, ToolCalled) else ""
            text = f"the record has no more than a likeness of what {called} returned"
            raise CassetteMiss(text, hint="have the tool return plain data")
        return self._redactor.restore(known)


def _what(known: RecordedCall) -> str:
    if isinstance(known.called, ToolCalled):
        return f"the tool {known.called.tool}"
    return f"the model {known.called.model}"


def _place(known: RecordedCall) -> tuple[NodeId, int, CallId]:
    return known.called.node, known.called.attempt, known.called.call
