"""Tools whose calls are recorded, made once where they must not be repeated, and reused."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from weft.core.call_context import current_key, key_of, keyed
from weft.core.calls import (
    Doneness,
    ToolCalled,
    ToolReturned,
    ToolsListed,
    tool_called,
    tool_returned,
)
from weft.core.errors import Cancelled, EffectUnknown, Failure, WeftError, convert
from weft.core.foreign import ErrorCause
from weft.core.ids import RunId
from weft.core.ports import BatchRunner, BoundTool, ToolRunner, bound
from weft.core.values import Effect, JsonSchema, ToolSpec
from weft.durability.calls.history import RecordedCall, fitted
from weft.durability.calls.log import CallLog, Write
from weft.durability.calls.once import ReportedResult, check_reported, doneness, settled, value_of
from weft.engine.graph.node import Retry
from weft.engine.scheduler.effects import (
    EFFECTS,
    CallSite,
    EffectEnd,
    EffectLedger,
    MadeCall,
    current_call_site,
)

GUARDED: Final = ("once", "idempotent")
"""Effects of calls that need a call log, also in runs that are not recorded."""


class _ToolCall:
    """One running call: what replaces it, and its two events.

    `key`: its idempotency key, empty for a tool without use for one.
    Methods that write an event return an awaitable where it must become durable.
    """

    __slots__ = (
        *("_call_log", "_effect", "_id", "_key", "_made", "_name", "_place", "_result"),
        *("arguments", "key"),
    )

    def __init__(
        self,
        call_log: CallLog,
        place: CallSite,
        name: str,
        arguments: Mapping[str, Any],
        effect: Effect,
        result: JsonSchema | None = None,
    ) -> None:
        self._call_log = call_log
        self._place = place
        self._name = name
        self.arguments = arguments
        self._effect = effect
        self._result = result
        self._id = call_log.ids.tool(place, call_log.digests.tool(name, arguments))
        self._made: MadeCall | None = None
        self._key = key_of(call_log.run, place.node, self._id) if effect in GUARDED else ""
        self.key = self._key if effect == "idempotent" else ""

    def settled(self) -> RecordedCall | ReportedResult | None:
        """What replaces making it. Raises: `EffectUnknown`."""
        if self._effect == "once":
            try:
                found = settled(self._call_log, self._place, self._id, self._name)
                if isinstance(found, ReportedResult) and self._result is not None:
                    check_reported(
                        self._call_log, self._place.node, self._name, found, self._result
                    )
                return found
            except EffectUnknown:
                # its node may not be replaced either
                MadeCall(self._name, self._refused_as())
                raise
        known = self._call_log.known(self._place, self._id)
        return known if known is not None and known.succeeded else None

    def _refused_as(self) -> EffectEnd:
        if self._call_log.once(self._place.node, self._id) is not None:
            return "unknown"
        other = self._call_log.replaced(self._place, self._id)
        return "lost" if other is None else "repeated"

    async def taken(self, settled: RecordedCall | ReportedResult) -> Any:
        """The value that replaces the call's own. Raises: the error of the call."""
        if isinstance(settled, RecordedCall):
            return value_of(settled)
        self._call_log.log(self._place.node, f"{self._name}: a person says that it was carried out")
        await _written(self.began(settled.where))
        await _written(self.returned(settled.value))
        return settled.value

    def began(self, stands_for: str = "") -> Awaitable[None] | None:
        """Write the intent."""
        place, call_log = self._place, self._call_log
        event = tool_called(
            place.node,
            place.attempt,
            self._id,
            self._name,
            dict(self.arguments),
            self._effect,
            self._key,
            call_log.now_s,
            stands_for,
        )
        return self._intended(event) if self._effect == "once" else call_log.put(event)

    async def _intended(self, event: ToolCalled) -> None:
        try:
            await self._call_log.write(event, True)
        except asyncio.CancelledError:  # the intent may be written, but nothing has acted on it
            stopped = Cancelled("it was cancelled before it was made").failure()
            await _written(self._ended(stopped, "not done"))
            raise
        self._made = MadeCall(self._name)

    def returned(self, value: Any) -> Awaitable[None] | None:
        """Write the result."""
        place, call_log = self._place, self._call_log
        event = tool_returned(
            place.node, place.attempt, self._id, value, None, "done", call_log.now_s
        )
        return self._carried_out(event) if self._effect == "once" else call_log.put(event)

    async def _carried_out(self, event: ToolReturned) -> None:
        if self._made is not None:
            self._made.carried_out()
        await self._kept(event)
        if self._made is not None:
            self._made.close()

    def failed(self, error: Exception) -> Awaitable[None] | None:
        """Write the failure."""
        done = doneness(error)
        if self._made is not None and done != "unknown":
            (self._made.close if done == "not done" else self._made.carried_out)()
        known = convert(error)
        return self._ended(known.failure(), done, known.cause)

    def _ended(
        self, failure: Failure, done: Doneness, cause: ErrorCause | None = None
    ) -> Awaitable[None] | None:
        place, call_log = self._place, self._call_log
        event = tool_returned(
            place.node, place.attempt, self._id, None, failure, done, call_log.now_s, cause
        )
        return self._kept(event) if self._effect == "once" else call_log.put(event)

    async def _kept(self, event: ToolReturned) -> None:
        try:
            await self._call_log.write(event, True)
        except asyncio.CancelledError:  # the end is known now, and could not be found out later
            await self._call_log.write(event, True)
            raise


async def _written(event: Awaitable[None] | None) -> None:
    if event is not None:
        await event


class RecordingTools:
    """Implements `ToolRunner` and `ToolBinder` over `inner`, and `BatchRunner` where `inner` does.

    Inside a run every call is written to `calls`, before it is made and after. A call with a result
    in an earlier part of the run is not made again. A tool with the effect `once` is called once
    for each call of a node, in all its attempts: where that call's end is unknown, the next one
    raises `EffectUnknown`. A tool with the effect `idempotent` gets its key from
    `idempotency_key()`. Where `calls` keeps no record, calls of other tools pass unchanged.

    `source` is the program's name of the server of the tools, if they have one.
    """

    def __new__(cls, inner: ToolRunner, *_: object, **__: object) -> RecordingTools:
        made: RecordingTools = object.__new__(fitted(cls, {BatchRunner: _Batches}, inner))
        return made

    def __init__(self, inner: ToolRunner, calls: CallLog, source: str = "") -> None:
        self._inner = inner
        self._calls = calls
        self._source = source
        self._specs: dict[str, ToolSpec] = {}

    def specs(self) -> tuple[ToolSpec, ...]:
        return self._inner.specs()

    async def listed(self) -> tuple[ToolSpec, ...]:
        """The specs of all tools, recorded: a server may be unavailable another time."""
        specs = self._inner.specs()
        if self._calls.kept and not self._calls.is_answered(f"tools:{self._source}", (specs,)):
            await self._calls.write(ToolsListed(self._source, specs, self._calls.now_s))
        return specs

    def resource(self, name: str) -> str | None:
        """The slot class of a call of the tool, where `inner` has one."""
        resource = getattr(self._inner, "resource", None)
        found: str | None = resource(name) if resource is not None else None
        return found

    def retry(self, name: str) -> Retry | None:
        """The retry that the tool declares, where `inner` knows it."""
        retry = getattr(self._inner, "retry", None)
        found: Retry | None = retry(name) if retry is not None else None
        return found

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return await self._call(name, partial(self._inner.call, name), arguments)

    def bound(self, name: str) -> BoundTool:
        make = bound(self._inner, name)
        passes = not self._calls.kept and self._effect(name) not in GUARDED
        return make if passes else partial(self._call, name, make)

    async def _call(self, name: str, make: BoundTool, arguments: Mapping[str, Any]) -> Any:
        spec = self._specs.get(name) or self._spec(name)
        effect: Effect = "unknown" if spec is None else spec.effect
        here = self._here(effect)
        if here is None:
            return await make(arguments)
        call = _ToolCall(*here, name, arguments, effect, None if spec is None else spec.result)
        settled = call.settled()
        if settled is not None:
            return await call.taken(settled)
        if (writing := call.began()) is not None:
            await writing
        try:
            if call.key == current_key():
                value = await make(arguments)
            else:
                with keyed(call.key):
                    value = await make(arguments)
        except Exception as error:
            await _written(call.failed(error))
            raise
        if (writing := call.returned(value)) is not None:
            await writing
        return value

    def _here(self, effect: Effect) -> tuple[CallLog, CallSite] | None:
        """The log and call site of a call with `effect`; None: it is not recorded."""
        place = current_call_site() if self._calls.kept or effect in GUARDED else None
        return None if place is None else (self._calls, place)

    def _spec(self, name: str) -> ToolSpec | None:
        if name not in self._specs:
            self._specs = {spec.name: spec for spec in self._inner.specs()}
        return self._specs.get(name)

    def _effect(self, name: str) -> Effect:
        spec = self._spec(name)
        return "unknown" if spec is None else spec.effect


class _Batches(RecordingTools):
    """Batches of calls of one tool; each call is recorded by itself."""

    async def call_batch(
        self, name: str, calls: Sequence[Mapping[str, Any]]
    ) -> Sequence[Any | WeftError]:
        effect = self._effect(name)
        here = self._here(effect)
        assert isinstance(self._inner, BatchRunner)
        if here is None:
            return await self._inner.call_batch(name, calls)
        spec = self._spec(name)
        result = None if spec is None else spec.result
        made = [_ToolCall(*here, name, arguments, effect, result) for arguments in calls]
        outcomes = {index: await _settled(call) for index, call in enumerate(made)}
        open_ = [index for index, call in enumerate(made) if outcomes[index] is call]
        if open_:
            found = await self._made([made[index] for index in open_], name)
            outcomes.update(zip(open_, found, strict=True))
        return list(outcomes.values())

    async def _made(self, calls: Sequence[_ToolCall], name: str) -> Sequence[Any | WeftError]:
        assert isinstance(self._inner, BatchRunner)
        for call in calls:
            await _written(call.began())
        try:
            found = await self._inner.call_batch(name, [call.arguments for call in calls])
        except Exception as error:
            for call in calls:
                await _written(call.failed(error))
            raise
        for call, outcome in zip(calls, found, strict=True):
            if isinstance(outcome, WeftError):
                await _written(call.failed(outcome))
            else:
                await _written(call.returned(outcome))
        return found


async def _settled(call: _ToolCall) -> Any | WeftError | _ToolCall:
    """What replaces the call, as an outcome; or the call itself, where it is to be made.

    No tool returns a `_ToolCall`, so it differs from every value.
    """
    try:
        settled = call.settled()
        return call if settled is None else await call.taken(settled)
    except WeftError as error:
        return error


_LOGS: Final[WeakKeyDictionary[EffectLedger, CallLog]] = WeakKeyDictionary()


class GuardedTools(RecordingTools):
    """Implements `ToolRunner` over `inner`, and `BatchRunner` where `inner` does.

    Guards calls in runs without an I/O boundary of their own (see
    `weft.workflow.runtime.boundary`); in other runs they pass unchanged.
    """

    def __init__(self, inner: ToolRunner) -> None:
        super().__init__(inner, unrecorded_log("tools"))

    def _here(self, effect: Effect) -> tuple[CallLog, CallSite] | None:
        scope = EFFECTS.get()
        if scope is None or scope.ledger.guarded or effect not in GUARDED:
            return None
        if scope.ledger not in _LOGS:
            _LOGS[scope.ledger] = unrecorded_log("run")
        return _LOGS[scope.ledger], CallSite(scope.node, scope.attempt)


def unrecorded_log(
    name: str, now_s: Callable[[], float] = lambda: 0.0, write: Write | None = None
) -> CallLog:
    """The calls of a run that is not recorded; `write` receives them as they are made.

    It has its own idempotency keys: another run with the same inputs makes its own calls.
    """
    return CallLog(RunId(f"{name}-{uuid.uuid4().hex}"), now_s, write)
