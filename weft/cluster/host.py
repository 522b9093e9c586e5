"""Runs tools for weft in a worker process: batches in, outcomes and log lines out.

Knows nothing of Ray. It has an event loop in a thread of its own, so that a tool that blocks the
loop does not silence the worker.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final, TypeVar

from pydantic_core import to_json

from weft.agents.tools import Toolbox
from weft.agents.tools.context import send_tool_logs
from weft.agents.tools.problem import as_tool_error
from weft.cluster.code import ShippedCode, ToolRef
from weft.cluster.frames import frame, frames, read_json, table
from weft.core.call_context import keyed
from weft.core.errors import ClusterError, Failure, NotDone, WeftError
from weft.core.foreign import LONGEST_DELAY_S, ErrorCause
from weft.core.ports.content import ContentStore
from weft.core.recorded_errors import error_of_failure

GRACE_S: Final = 0.01
"""How long a batch is waited for before its reply leaves without the rest."""
HEARTBEAT_S: Final = 1.0
FORCED_S: Final = 0.5
INLINE_BYTES: Final = 64 * 1024
"""Larger values travel through the content store."""
_MOST_OUTCOMES: Final = 256
_MOST_BYTES: Final = 4 * 1024 * 1024
_MOST_LINES: Final = 1_000
"""Log lines that wait for a reply; further ones are counted and left out."""
_LONGEST_LINE: Final = 4_000

T = TypeVar("T")


class ToolHost:
    """The tools of one package of code, called in batches."""

    def __init__(self, code: ShippedCode, store: ContentStore) -> None:
        self._code = code
        self._store = store
        self._boxes: dict[str, Toolbox] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self._clients: dict[int, str] = {}
        self._outcomes: dict[str, deque[tuple[int, bytes]]] = {}
        self._lines: dict[str, list[tuple[int, str]]] = {}
        self._dropped = 0
        self._news = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="weft tools", daemon=True).start()

    def run(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a method of this host in its loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def submit(self, batch: bytes) -> bytes:
        """Start the calls of `batch`; the reply has what ended within `GRACE_S`."""
        ((header, body),) = frames(batch)
        client, act_before = str(header["client"]), header.get("act_before")
        content = table(read_json(body))
        refs = [ToolRef.of(table(each)) for each in content["tools"]]
        tasks = []
        for call, tool, key, kind, arguments in content["calls"]:
            self._clients[call] = client
            work = self._call(call, refs[tool], key, kind, arguments, act_before)
            task = self._running[call] = self._loop.create_task(work)
            tasks.append(task)
        await asyncio.wait(tasks, timeout=GRACE_S)
        return self._reply()

    async def poll(self) -> bytes:
        """What has ended since, or been logged; waits for it for `HEARTBEAT_S`."""
        if not any(self._outcomes.values()) and not self._lines:
            self._news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), HEARTBEAT_S)
            await asyncio.sleep(0)  # what ends in the same pass
        return self._reply()

    async def cancel(self, calls: list[int]) -> None:
        """Cancel calls; what has not ended `FORCED_S` later is abandoned."""
        tasks = {call: self._running[call] for call in calls if call in self._running}
        for task in tasks.values():
            task.cancel()
        if tasks:
            await asyncio.wait(tasks.values(), timeout=FORCED_S)
        for call in tasks:
            self._end(call, [call, "cancelled", None])

    def clock(self) -> float:
        """This worker's clock, by which `act_before` is checked."""
        return time.monotonic()

    async def _call(
        self,
        call: int,
        ref: ToolRef,
        key: str,
        kind: str,
        arguments: Any,
        act_before: float | None,
    ) -> None:
        outcome: list[Any]
        try:
            if act_before is not None and time.monotonic() > act_before:
                raise NotDone("the lease of the call ended before it began")
            if kind.endswith("ref"):
                arguments = read_json(await self._store.get(arguments))
            send_tool_logs(lambda text: self._log(call, text))
            box = self._box(ref)
            with keyed(key):
                if kind.startswith("batch"):
                    found = await box.call_batch(ref.name, arguments)
                    parts = [await self._outcome(each) for each in found]
                    outcome = [call, "batch", parts]
                else:
                    outcome = [call, *await self._outcome(await box.bound(ref.name)(arguments))]
        except asyncio.CancelledError:
            outcome = [call, "cancelled", None]
        except BaseException as error:  # noqa: BLE001 - any error is the outcome
            outcome = [call, "error", error_data(as_tool_error(ref.name, error))]
        self._end(call, outcome)

    def _box(self, ref: ToolRef) -> Toolbox:
        box = self._boxes.get(ref.key)
        if box is None:
            box = self._boxes[ref.key] = Toolbox()
            box.add(self._code.tool(ref))
        return box

    async def _outcome(self, value: Any) -> list[Any]:
        if isinstance(value, WeftError):
            return ["error", error_data(value)]
        text = to_json(value, inf_nan_mode="constants")
        if len(text) > INLINE_BYTES:
            return ["ref", await self._store.put(text)]
        return ["value", value]

    def _end(self, call: int, outcome: list[Any]) -> None:
        client = self._clients.pop(call, None)
        self._running.pop(call, None)
        if client is None:  # abandoned before
            return
        text = to_json(outcome, inf_nan_mode="constants")
        self._outcomes.setdefault(client, deque()).append((call, text))
        self._news.set()

    def _log(self, call: int, text: str) -> None:
        client = self._clients.get(call)
        if client is None:
            return
        lines = self._lines.setdefault(client, [])
        if len(lines) < _MOST_LINES:
            lines.append((call, text[:_LONGEST_LINE]))
            self._news.set()
        else:
            self._dropped += 1

    def _reply(self) -> bytes:
        """A frame for each client with news, or one without client as a heartbeat."""
        made = []
        for client in {*self._outcomes, *self._lines}:
            lines = self._lines.pop(client, [])
            calls: list[int] = []
            texts: list[bytes] = []
            size = 0
            waiting = self._outcomes.get(client, deque())
            while waiting and len(calls) < _MOST_OUTCOMES and size < _MOST_BYTES:
                call, text = waiting.popleft()
                calls.append(call)
                texts.append(text)
                size += len(text)
            if not waiting:
                self._outcomes.pop(client, None)
            body = b"[" + b",".join(texts) + b"]"
            header: dict[str, Any] = {
                "kind": "outcomes",
                "client": client,
                "ended": calls,
                "logs": lines,
            }
            if self._dropped:
                header["dropped"], self._dropped = self._dropped, 0
            made.append(frame({**header, "clock": self.clock()}, body))
        return b"".join(made) or frame({"kind": "alive", "clock": self.clock()})


def error_data(error: WeftError) -> dict[str, Any]:
    """An error as data; `error_of` reads it."""
    return {
        "error": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "retryable": error.retryable,
        "retry_after_s": error.retry_after_s,
        "cause": None if error.cause is None else asdict(error.cause),
    }


def error_of(given: Any) -> WeftError:
    """The error that `error_data` wrote. Raises: `ClusterError` for anything else."""
    try:
        failure = Failure(
            str(given["error"]),
            str(given["message"]),
            "run",
            bool(given["retryable"]),
            None if given["hint"] is None else str(given["hint"]),
        )
        cause, after_s = given["cause"], given["retry_after_s"]
        error = error_of_failure(failure)
        if cause is not None:
            status = None if cause["status"] is None else int(cause["status"])
            wait = None if cause["retry_after_s"] is None else float(cause["retry_after_s"])
            error.cause = ErrorCause(tuple(map(str, cause["classes"])), status, wait)
        if after_s is not None:
            error.retry_after_s = min(max(0.0, float(after_s)), LONGEST_DELAY_S)
    except (KeyError, TypeError, ValueError):
        raise ClusterError("a worker's error has another form") from None
    return error


def check_outcomes(body: bytes) -> list[list[Any]]:
    """The outcomes of a reply. Raises: `ClusterError`."""
    found = read_json(body)
    sound = isinstance(found, list) and all(
        isinstance(each, list) and len(each) == 3 and type(each[0]) is int for each in found
    )
    if not sound:
        raise ClusterError("a worker's reply has another form")
    outcomes: list[list[Any]] = found
    return outcomes
