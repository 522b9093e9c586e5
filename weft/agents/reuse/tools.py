"""A tool runner that repeats no call, and counts the savings."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from weft.agents.reuse.fusion import CallFusion, SharedCall
from weft.agents.tools.approval import ApprovalRule
from weft.agents.tools.context import current_sink
from weft.agents.tools.toolbox import breaker_of, resource_of, settings_of
from weft.core.breaker import Breaker
from weft.core.errors import StoreError, WeftError
from weft.core.ports import BatchRunner, BoundTool, Clock, ResultStore, ToolRunner, bound
from weft.core.ports.clock import SystemClock
from weft.core.values import ToolSpec
from weft.engine import Retry
from weft.engine.graph.content_digest import key
from weft.engine.graph.node import NodeCache


@dataclass(slots=True)
class ReuseCounts:
    """Counts of a `ReusingTools`.

    asked    calls by callers
    shared   those answered by an identical call of this run
    stored   those answered by the store
    made     calls that reached the tools; a batch is one
    batches  how many of these were batches
    fused    the calls inside those batches
    """

    asked: int = 0
    shared: int = 0
    stored: int = 0
    made: int = 0
    batches: int = 0
    fused: int = 0


_FORMAT: Final = "weft tool result 1"


class ReusingTools:
    """Implements `ToolRunner` and `ToolBinder` over `inner`, for one run.

    Results are the same as without.

    Identical calls of a pure tool are made once, even concurrent ones; a cancelled caller does not
    cancel the others, and a failure is not cached. Calls of a tool with a batch form within
    `window_s` seconds are batched (0: within one iteration of the event loop).

    store    keeps results of pure tools for other runs, for `ttl_s` seconds (None: for ever).
             Tools without a version are excluded: they may have changed. A failing store is logged
             and ignored
    kept     the number of results cached within the run, the latest

    The fusing of calls follows LLM-Tool Compiler (arXiv 2405.17438); here only the clock decides,
    without any model call.
    """

    def __init__(
        self,
        inner: ToolRunner,
        *,
        store: ResultStore | None = None,
        ttl_s: float | None = None,
        window_s: float = 0.002,
        kept: int = 1024,
        clock: Clock | None = None,
    ) -> None:
        if window_s < 0 or kept < 0 or (ttl_s is not None and ttl_s <= 0):
            raise ValueError("window_s and kept are not negative, ttl_s is positive")
        self._inner = inner
        self._store = store
        self._ttl_s = ttl_s
        self._window_s = window_s
        self._kept = kept
        self._clock = clock or SystemClock()
        self._specs: dict[str, ToolSpec] = {}
        self._cache_spec: dict[str, tuple[ToolSpec, NodeCache]] = {}
        self._calls: OrderedDict[str, SharedCall] = OrderedDict()
        self._fusions: dict[str, CallFusion] = {}
        self.counts = ReuseCounts()

    def specs(self) -> tuple[ToolSpec, ...]:
        return self._inner.specs()

    def resource(self, name: str) -> str | None:
        """The resource whose slots a call of the tool takes, or None."""
        return resource_of(self._inner, name)

    def retry(self, name: str) -> Retry | None:
        """The retry that the tool declares, or None."""
        return settings_of(self._inner, name).retry

    def approval(self, name: str) -> ApprovalRule | None:
        """Whether calls of the tool need a person's approval; None: it does not say."""
        rule = getattr(self._inner, "approval", None)
        found: ApprovalRule | None = None if rule is None else rule(name)
        return found

    def breaker(self, name: str) -> Breaker | None:
        """The circuit breaker that the tool declares, or None."""
        return breaker_of(self._inner, name)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        self.counts.asked += 1
        spec = self._spec(name)
        same = self._same(spec, arguments) if spec is not None and spec.pure else None
        if spec is None or same is None:
            return await self._make(spec, name, arguments)
        shared = self._calls.get(same)
        if shared is not None and shared.usable:
            self.counts.shared += 1
        else:
            shared = SharedCall(self._find(spec, arguments, same))
            self._keep(same, shared)
        return await shared.result()

    def bound(self, name: str) -> BoundTool:
        spec = self._spec(name)
        if spec is not None and (spec.pure or spec.batch > 1):
            return partial(self.call, name)
        inner, counts = bound(self._inner, name), self.counts

        def call(arguments: Mapping[str, Any]) -> Awaitable[Any]:
            counts.asked += 1
            counts.made += 1
            return inner(arguments)

        return call

    def _spec(self, name: str) -> ToolSpec | None:
        if name not in self._specs:
            self._specs = {spec.name: spec for spec in self._inner.specs()}
        return self._specs.get(name)

    def _same(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> str | None:
        """The key of identical calls: tool, version, schemas, arguments; None: not comparable.

        Arguments are compared as given: an explicit default makes a different call.
        """
        cached = self._cache_spec.get(spec.name)
        if cached is None or cached[0] is not spec:
            cached = self._cache_spec[spec.name] = spec, _cache_spec(spec)
        return key(cached[1], arguments)

    def _keep(self, same: str, shared: SharedCall) -> None:
        self._calls[same] = shared
        self._calls.move_to_end(same)
        if len(self._calls) > self._kept:
            self._calls.popitem(last=False)

    async def _find(self, spec: ToolSpec, arguments: Mapping[str, Any], same: str) -> Any:
        if self._store is None or not spec.version:
            return await self._make(spec, spec.name, arguments)
        try:
            entry = await self._store.get(same)
        except StoreError as error:
            current_sink()(f"{spec.name}: {error}")
            entry = None
        if entry is not None:
            self.counts.stored += 1
            return entry.value
        value = await self._make(spec, spec.name, arguments)
        try:
            await self._store.put(same, value, self._ttl_s)
        except (StoreError, TypeError) as error:
            current_sink()(f"{spec.name}: its result is not kept: {error}")
        return value

    async def _make(self, spec: ToolSpec | None, name: str, arguments: Mapping[str, Any]) -> Any:
        if spec is None or spec.batch < 2 or not isinstance(self._inner, BatchRunner):
            return await self._call_single(name, arguments)
        if name not in self._fusions:

            async def call_batch(calls: Sequence[Mapping[str, Any]]) -> Sequence[Any | WeftError]:
                return await self._call_batch(name, calls)

            self._fusions[name] = CallFusion(call_batch, spec.batch, self._window_s, self._clock)
        return await self._fusions[name].call(arguments)

    async def _call_single(self, name: str, arguments: Mapping[str, Any]) -> Any:
        self.counts.made += 1
        return await self._inner.call(name, arguments)

    async def _call_batch(
        self, name: str, calls: Sequence[Mapping[str, Any]]
    ) -> Sequence[Any | WeftError]:
        if len(calls) == 1:
            return [await self._call_single(name, calls[0])]
        assert isinstance(self._inner, BatchRunner)
        self.counts.made += 1
        self.counts.batches += 1
        self.counts.fused += len(calls)
        return await self._inner.call_batch(name, calls)


def _cache_spec(spec: ToolSpec) -> NodeCache:
    parts = [_FORMAT, spec.name, spec.version, spec.parameters, spec.result]
    return NodeCache(json.dumps(parts, sort_keys=True, default=repr))
