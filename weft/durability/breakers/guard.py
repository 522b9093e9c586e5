"""One circuit breaker as one run uses it: makes calls, judges their ends, tells its changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from datetime import timedelta
from types import TracebackType
from typing import Final, Literal
from weakref import WeakKeyDictionary

from weft.core import errors
from weft.core.breaker import Breaker
from weft.core.error_names import status_of
from weft.core.errors import BreakerOpen, ModelBreakerOpen, ToolBreakerOpen, WeftError
from weft.core.foreign import TRANSIENT_STATUSES, ErrorCause, cause_of
from weft.core.ports.clock import Clock, SystemClock
from weft.durability.breakers.circuit import BreakerChange, BreakerRefusal, CircuitBreaker, Permit
from weft.engine.scheduler.effects import EFFECTS

Verdict = Literal["failed", "answered", "nothing"]
"""What the end of a call says of the called side; `answered`: it works, and refused this call."""

_NOTHING: Final = (
    *(errors.BreakerOpen, errors.BuildError, errors.ToolArgumentError, errors.ToolNotFound),
    *(errors.ToolDenied, errors.WorkerLost, errors.ModelNotFound, errors.CapabilityError),
    *(errors.Cancelled, errors.BudgetExceeded, errors.DeadlineExceeded, errors.EffectUnknown),
    *(errors.StoreError, errors.ClusterError, errors.SpecError, errors.EngineMissing),
    errors.InternalError,
)
_ANSWERED: Final = (errors.ModelRequestError, errors.ModelOutputError, errors.ToolResultError)


def verdict_of(error: BaseException) -> Verdict:
    """What `error` says: a fault of the called side, of the call, or of neither.

    A fault of the called side is a lost connection, a timeout, an HTTP status 408, 425, 429 or 5xx,
    or an exception of the tool's own code. Not one are arguments that do not fit, other statuses,
    an answer that does not fit its type, and a cancellation, unless the node's own time limit ended
    the call.
    """
    if isinstance(error, asyncio.CancelledError):
        scope = EFFECTS.get()
        return "failed" if scope is not None and scope.context.timed_out else "nothing"
    if not isinstance(error, Exception) or isinstance(error, _NOTHING):
        return "nothing"
    if isinstance(error, _ANSWERED):
        return "answered"
    status = status_of(error)
    refused = status is not None and status < 500 and status not in TRANSIENT_STATUSES
    return "answered" if refused else "failed"


@dataclass(frozen=True, slots=True)
class Guarded:
    """What a breaker guards: a `tool`, a `server` of tools or a `model`, by its declared name."""

    kind: Literal["tool", "server", "model"]
    name: str
    workflow: str = ""

    def __str__(self) -> str:
        kind = "tool server" if self.kind == "server" else self.kind
        return f"the {kind} `{self.name}`"


OnChange = Callable[[Guarded, BreakerChange, str], None]
"""Called with what is guarded, the change, and the reason in words."""


class BreakerGuard:
    """Makes the calls of one run through a `breaker`, which other runs share.

    `with guard.call() as call:` raises `BreakerOpen` where the call must not be made. An exception
    that leaves the block ends the call with its verdict; else it has succeeded.
    """

    def __init__(
        self, guarded: Guarded, breaker: CircuitBreaker, clock: Clock, on_change: OnChange
    ) -> None:
        self.guarded = guarded
        self.breaker = breaker
        self._clock = clock
        self._on_change = on_change

    def call(self) -> GuardedCall:
        """A call that is about to begin. It does so where its `with` block does."""
        return GuardedCall(self)

    def admit(self) -> Permit:
        """The permit of a call. Raises: `BreakerOpen`."""
        permit, change = self.breaker.admit(self._clock.now())
        if change is not None:
            self._tell(change, "a call is made to see whether it succeeds")
        if isinstance(permit, BreakerRefusal):
            raise self._refused(permit)
        return permit

    def end(self, permit: Permit, verdict: Verdict | None, error: str = "") -> None:
        """Note how a call ended; `verdict` None: well. `error`: the class of its error."""
        breaker = self.breaker
        if verdict == "nothing":
            breaker.release(permit)
        elif verdict == "failed":
            if (change := breaker.failed(permit, self._clock.now())) is not None:
                self._tell(change, f"{_failed(change, breaker.settings)}, the last with {error}")
        elif (change := breaker.succeeded(permit, self._clock.now())) is not None:
            self._tell(change, f"{_many(change.count, 'call')} succeeded")

    def postpone(self, error: WeftError) -> None:
        """Let a retry after `error` wait until an open breaker lets a call through."""
        left_s = self.breaker.left_s(self._clock.now())
        if left_s is None:
            return
        error.retry_after_s = max(left_s, error.retry_after_s or 0.0)
        behind = error.__cause__
        cause = error.cause or (ErrorCause() if behind is None else cause_of(behind))
        error.cause = replace(cause, retry_after_s=error.retry_after_s)

    def _tell(self, change: BreakerChange, reason: str) -> None:
        self._on_change(self.guarded, change, reason)

    def _refused(self, refusal: BreakerRefusal) -> BreakerOpen:
        ago_s = self._clock.now() - refusal.since_s
        since = (self._clock.wall() - timedelta(seconds=ago_s)).isoformat(timespec="seconds")
        if refusal.state == "half-open":
            until = "one call is being tried"
        else:
            until = f"the next call is tried in {refusal.retry_s or 0.0:.3g} s"
        error = (ModelBreakerOpen if self.guarded.kind == "model" else ToolBreakerOpen)(
            f"{self.guarded} is not called: its circuit breaker is open since {since}; {until}",
            hint="a `retry` waits for it, and `fallback` goes on without it",
        )
        error.retry_after_s = refusal.retry_s
        error.cause = ErrorCause(retry_after_s=refusal.retry_s)
        return error


class GuardedCall:
    """One call through a `BreakerGuard`."""

    __slots__ = ("_guard", "_permit")

    def __init__(self, guard: BreakerGuard) -> None:
        self._guard = guard
        self._permit: Permit | None = None

    def __enter__(self) -> GuardedCall:
        self._permit = self._guard.admit()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.end(None)
            return
        verdict = verdict_of(error)
        self.end(verdict, type(_behind(error)).__name__)
        if verdict == "failed" and isinstance(error, WeftError):
            self._guard.postpone(error)

    def end(self, verdict: Verdict | None, error: str = "") -> None:
        """The call has ended, before its block does; only the first end counts."""
        permit, self._permit = self._permit, None
        if permit is not None:
            self._guard.end(permit, verdict, error)


def _behind(error: BaseException) -> BaseException:
    """The exception of a tool's own code, where `error` wraps one."""
    behind = error.__cause__
    return behind if isinstance(error, WeftError) and behind is not None else error


def _failed(change: BreakerChange, settings: Breaker) -> str:
    if change.count < settings.failures:
        return "the call that was tried failed"
    return f"{_many(change.count, 'call')} failed within {settings.within_s:g} s"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


_SYSTEM: Final = SystemClock()
_PROCESS: Final = SystemClock()
"""Owns the breakers of what is declared in files."""
_BREAKERS: WeakKeyDictionary[object, WeakKeyDictionary[Clock, dict[Hashable, CircuitBreaker]]] = (
    WeakKeyDictionary()
)


def process_breaker(
    clock: Clock | None, key: Hashable, settings: Breaker, owner: object = None
) -> CircuitBreaker:
    """The breaker of this process for `key` and `settings`, one for each clock.

    `owner`: the object of a Python program that is called, with which the breaker is forgotten.
    """
    own = clock_of(clock)
    try:
        clocks = _BREAKERS.setdefault(_PROCESS if owner is None else owner, WeakKeyDictionary())
    except TypeError:  # it cannot be a key, or be referred to weakly
        clocks = _BREAKERS.setdefault(_PROCESS, WeakKeyDictionary())
        key = id(owner), key
    breakers = clocks.setdefault(own, {})
    return breakers.setdefault((key, settings), CircuitBreaker(settings))


def clock_of(clock: Clock | None) -> Clock:
    """`clock`; all system clocks are one."""
    return _SYSTEM if clock is None or isinstance(clock, SystemClock) else clock
