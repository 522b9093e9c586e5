"""Calls on their way: micro-batches out, outcomes in, and what follows when a worker is lost.

One dispatcher for one event loop. It knows no tools: a call is bytes, an outcome is data.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_core import to_json

from weft.agents.tools.context import LogSink
from weft.cluster.code import ToolRef
from weft.cluster.host import FORCED_S, check_outcomes, error_of
from weft.cluster.link import Connect, Link
from weft.core.errors import ClusterError, EffectUnknown, NotDone, WeftError, WorkerLost, convert
from weft.core.values import Effect

MAX_BATCH: Final = 256
MAX_OPEN: Final = 4_096
"""Calls of one route that are with the bridge; more wait here."""
MAX_OPEN_BYTES: Final = 16 * 1024 * 1024
MAX_SENDINGS: Final = 8
"""How often a call that may be repeated is sent in all, before its loss is an error."""
_REPEATED: Final = ("pure", "idempotent")


@dataclass(frozen=True, slots=True)
class PoolRoute:
    """A pool with a package of code, as the bridge knows it."""

    header: Mapping[str, Any]


@dataclass(eq=False, slots=True)
class _Call:
    id: int
    ref: ToolRef
    key: str
    kind: str
    arguments: bytes
    effect: Effect
    sink: LogSink
    outcome: asyncio.Future[list[Any]]
    sendings: int = 0


@dataclass(eq=False)
class _Lane:
    """The calls of one route. `workers`: as many as there are, None before it is known."""

    route: PoolRoute
    waiting: deque[_Call] = field(default_factory=deque)
    sent: dict[int, _Call] = field(default_factory=dict)
    sent_bytes: int = 0
    workers: int | None = None
    opening: asyncio.Task[None] | None = None
    opened: asyncio.Future[int] | None = None
    is_flushing: bool = False


class Dispatcher:
    """Sends calls through the link that `connect` opens, which is opened anew when it is lost."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._link: Link | None = None
        self._linking: asyncio.Task[None] | None = None
        self._looking: asyncio.Future[list[str]] | None = None
        self._lanes: dict[int, _Lane] = {}
        self._calls: dict[int, _Lane] = {}
        self._next = secrets.randbits(38) << 24
        self._loop = asyncio.get_running_loop()

    async def call(
        self,
        route: PoolRoute,
        ref: ToolRef,
        key: str,
        kind: str,
        arguments: bytes,
        effect: Effect,
        sink: LogSink,
    ) -> list[Any]:
        """The outcome of a call, as `ToolHost` writes it: `[kind, value]`.

        Cancelling the caller cancels the call, and waits for `FORCED_S` for it to end.

        Raises: `WorkerLost`, `EffectUnknown` or `NotDone` when it was lost, `ClusterError`.
        """
        lane = self._lanes.setdefault(id(route), _Lane(route))
        self._next += 1
        call = _Call(
            self._next, ref, key, kind, arguments, effect, sink, self._loop.create_future()
        )
        self._calls[call.id] = lane
        lane.waiting.append(call)
        self._schedule(lane)
        try:
            return await call.outcome
        except asyncio.CancelledError:
            await self._cancel(lane, call)
            raise
        finally:
            self._calls.pop(call.id, None)
            self._remove(lane, call)

    async def missing(self, labels: Sequence[str]) -> list[str]:
        """Those of `labels` that no node has; all where no node has all. One question at a time.

        Raises: `ClusterError` without a way to the cluster.
        """
        link = await self._connected()
        self._looking = self._loop.create_future()
        link.send({"kind": "labels", "labels": list(labels)})
        return await self._looking

    async def aclose(self) -> None:
        """Close the link, which cancels what runs."""
        for task in (self._linking, *(lane.opening for lane in self._lanes.values())):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        if self._link is not None:
            link, self._link = self._link, None
            await link.aclose()

    async def _cancel(self, lane: _Lane, call: _Call) -> None:
        if call.id not in lane.sent or self._link is None:
            return
        call.outcome = self._loop.create_future()
        self._link.send({"kind": "cancel", "calls": [call.id]})
        await asyncio.wait({call.outcome}, timeout=FORCED_S + 0.1)
        if call.outcome.done() and not call.outcome.cancelled():
            call.outcome.exception()  # retrieved

    def _remove(self, lane: _Lane, call: _Call) -> None:
        if lane.sent.pop(call.id, None) is not None:
            lane.sent_bytes -= len(call.arguments)
            if lane.waiting:
                self._schedule(lane)

    def _schedule(self, lane: _Lane) -> None:
        """Flush at the end of this pass of the loop: with all calls of the scheduling step."""
        if not lane.is_flushing:
            lane.is_flushing = True
            self._loop.call_soon(self._flush, lane)

    def _flush(self, lane: _Lane) -> None:
        lane.is_flushing = False
        self._drop_ended(lane)
        if not lane.waiting:
            return
        if self._link is None or lane.workers is None:
            if lane.opening is None:
                lane.opening = asyncio.ensure_future(self._open(lane))
            return
        room = MAX_OPEN - len(lane.sent)
        ready: list[_Call] = []
        while lane.waiting and len(ready) < room and lane.sent_bytes < MAX_OPEN_BYTES:
            call = lane.waiting.popleft()
            if call.outcome.done():
                continue
            ready.append(call)
            lane.sent[call.id] = call
            lane.sent_bytes += len(call.arguments)
        many = [call for call in ready if call.effect != "once"]
        for call in ready:
            if call.effect == "once":
                self._send(lane, [call])
        each = min(MAX_BATCH, max(1, -(-len(many) // lane.workers)))
        for at in range(0, len(many), each):
            self._send(lane, many[at : at + each])

    @staticmethod
    def _drop_ended(lane: _Lane) -> None:
        while lane.waiting and lane.waiting[0].outcome.done():
            lane.waiting.popleft()

    def _send(self, lane: _Lane, calls: list[_Call]) -> None:
        assert self._link is not None
        tools: dict[str, int] = {}
        entries = []
        for call in calls:
            call.sendings += 1
            at = tools.setdefault(call.ref.key, len(tools))
            head = b'[%d,%d,%b,"%b",' % (call.id, at, to_json(call.key), call.kind.encode())
            entries.append(b"".join((head, call.arguments, b"]")))
        refs = ",".join(tools).encode()
        body = b"".join((b'{"tools":[', refs, b'],"calls":[', b",".join(entries), b"]}"))
        once = calls[0].effect == "once"
        ids = [call.id for call in calls]
        header = {**lane.route.header, "kind": "submit", "calls": ids, "once": once}
        self._link.send(header, body)

    async def _open(self, lane: _Lane) -> None:
        """Connect, and ask how many workers the route has. An error ends the waiting calls."""
        try:
            link = await self._connected()
            lane.opened = self._loop.create_future()
            number = self._number_of(lane)
            link.send({**lane.route.header, "kind": "open", "route": number})
            lane.workers = await lane.opened
        except Exception as error:  # noqa: BLE001 - the callers have it
            self._refuse(lane, convert(error))
        finally:
            lane.opening = None
        self._schedule(lane)

    def _number_of(self, lane: _Lane) -> int:
        return id(lane.route)

    async def _connected(self) -> Link:
        if self._link is None:
            if self._linking is None:
                self._linking = asyncio.ensure_future(self._linked())
            await asyncio.shield(self._linking)
        assert self._link is not None
        return self._link

    async def _linked(self) -> None:
        try:
            self._link = await self._connect(self._received, self._lost_link)
        finally:
            self._linking = None

    def _refuse(self, lane: _Lane, error: WeftError) -> None:
        """End the calls that wait: none of them was sent."""
        waiting = [call for call in lane.waiting if not call.outcome.done()]
        lane.waiting.clear()
        for call in waiting:
            self._unsent(call, error)

    @staticmethod
    def _unsent(call: _Call, error: WeftError) -> None:
        if call.effect == "once" and error.retryable:
            failed: WeftError = NotDone(error.message, hint=error.hint)
        else:
            failed = _copy(error)
        _fail(call, failed)

    def _received(self, header: Mapping[str, Any], body: bytes) -> None:
        match header["kind"]:
            case "outcomes":
                self._ended(header, body)
            case "opened" | "closed":
                self._opened(header)
            case "labels":
                if self._looking is not None and not self._looking.done():
                    self._looking.set_result([str(label) for label in header["missing"]])
            case "lost":
                for call in self._known(header["calls"]):
                    self._lost(call, str(header["why"]))
            case "unsent":
                error = error_of(header["error"])
                for call in self._known(header["calls"]):
                    self._take_back(call)
                    self._unsent(call, error)
            case kind:
                raise ClusterError(f"the bridge says {kind!r}")

    def _opened(self, header: Mapping[str, Any]) -> None:
        lane = self._lanes.get(int(header["route"]))
        if lane is None or lane.opened is None or lane.opened.done():
            return
        if header["kind"] == "opened":
            lane.opened.set_result(max(1, int(header["workers"])))
        else:
            lane.opened.set_exception(error_of(header["error"]))

    def _ended(self, header: Mapping[str, Any], body: bytes) -> None:
        for number, text in header["logs"]:
            lane = self._calls.get(number)
            if lane is not None and number in lane.sent:
                lane.sent[number].sink(str(text))
        for number, kind, value in check_outcomes(body):
            lane = self._calls.get(number)
            call = None if lane is None else lane.sent.get(number)
            if lane is None or call is None:
                continue
            lane.workers = max(1, int(header.get("workers", 1)))
            if not call.outcome.done():
                call.outcome.set_result([kind, value])

    def _known(self, numbers: Any) -> list[_Call]:
        lanes = [(number, self._calls.get(number)) for number in numbers]
        return [lane.sent[number] for number, lane in lanes if lane and number in lane.sent]

    def _take_back(self, call: _Call) -> _Lane:
        lane = self._calls[call.id]
        if lane.sent.pop(call.id, None) is not None:
            lane.sent_bytes -= len(call.arguments)
        return lane

    def _lost(self, call: _Call, why: str) -> None:
        """A call that was sent, and perhaps carried out, has no outcome."""
        lane = self._take_back(call)
        if call.outcome.done():
            return
        if call.effect == "once":
            hint = "a person must say whether it was carried out"
            _fail(call, EffectUnknown(f"{call.ref.name}: {why}", hint=hint))
        elif call.effect in _REPEATED and call.sendings < MAX_SENDINGS:
            call.sink(
                f"{call.ref.name}: {why}; it is sent again ({call.sendings + 1} of {MAX_SENDINGS})"
            )
            lane.waiting.append(call)
            self._schedule(lane)
        else:
            times = f", after it was sent {call.sendings} times" if call.sendings > 1 else ""
            _fail(call, WorkerLost(f"{call.ref.name}: {why}{times}"))

    def _lost_link(self) -> None:
        self._link = None
        if self._looking is not None and not self._looking.done():
            self._looking.set_exception(ClusterError("the bridge to the cluster ended"))
        for lane in self._lanes.values():
            lane.workers = None
            if lane.opened is not None and not lane.opened.done():
                lane.opened.set_exception(ClusterError("the bridge to the cluster ended"))
            for call in list(lane.sent.values()):
                self._lost(call, "the bridge to the cluster ended")


def _fail(call: _Call, error: WeftError) -> None:
    if not call.outcome.done():
        call.outcome.set_exception(error)
        call.outcome.exception()  # retrieved: its caller may be cancelled first


def _copy(error: WeftError) -> WeftError:
    """An error of its own for each call: it records its node on its way up."""
    from weft.agents.reuse.fusion import copy_error

    return copy_error(error)
