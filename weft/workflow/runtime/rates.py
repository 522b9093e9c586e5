"""Requests and tokens per minute of a run's models and tools, shared with other runs."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from weft.core.errors import BuildError
from weft.core.ids import NodeId
from weft.core.ports import BoundTool, Clock, ModelClient
from weft.core.ports.rates import RateStore
from weft.durability.rates import RateLimiter, RateLimits, limited_client
from weft.engine.scheduler.effects import current_call_site
from weft.workflow.document.spec.settings import LimitSpec
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.boundary import BoundaryModels
from weft.workflow.runtime.models.composed import is_composed
from weft.workflow.runtime.models.factory import ModelSource


class RunRates:
    """The rate limits of one run, by the names of its models and the resources of its tools.

    Runs share a limit where they share `store` and name the same declared model or tool.

    Raises: `BuildError` for limits that cannot be kept.
    """

    def __init__(
        self,
        unit: Unit,
        limits: Mapping[str, LimitSpec],
        store: RateStore,
        clock: Clock | None,
        log: Callable[[NodeId, str], None],
    ) -> None:
        self._limits = {name: rate_of(limit) for name, limit in limits.items() if is_rate(limit)}
        self._store = store
        self._clock = clock
        self._log = log
        for name, limit in self._limits.items():
            _check(unit, name, limit)

    def __bool__(self) -> bool:
        return bool(self._limits)

    def models(self, inner: ModelSource, given: Container[str] = ()) -> ModelSource:
        """The models of `inner`, whose calls wait for their limits."""

        def leaf(unit: Unit, name: str) -> ModelClient:
            client = inner.client(unit, name)
            if name not in self._limits:
                return client
            return limited_client(client, self._limiter(name, _model_key(unit, name, client)))

        return BoundaryModels(leaf, given)

    def tool(self, resource: str | None, call: BoundTool) -> BoundTool:
        """`call`, which waits for the limit of `resource`."""
        if resource is None or resource not in self._limits:
            return call
        limiter = self._limiter(resource, f"tool:{resource}")

        async def limited(arguments: Mapping[str, Any]) -> Any:
            async with limiter.admit():
                return await call(arguments)

        return limited

    def _limiter(self, name: str, key: str) -> RateLimiter:
        limits = self._limits[name]
        return RateLimiter(name, key, limits, self._store, clock=self._clock, log=self._log_waiting)

    def _log_waiting(self, text: str) -> None:
        site = current_call_site()
        if site is not None:
            self._log(site.node, text)


def is_rate(limit: LimitSpec) -> bool:
    """Whether it limits more than slots."""
    return limit.requests_per_minute is not None or limit.tokens_per_minute is not None


def rate_of(limit: LimitSpec) -> RateLimits:
    """The rates of a limit."""
    return RateLimits(limit.requests_per_minute, limit.tokens_per_minute)


def _check(unit: Unit, name: str, limits: RateLimits) -> None:
    if is_composed(unit, name):
        parts = ", ".join(unit.document.models[name].behind)
        hint = f"limit the models that it calls: {parts}"
        raise BuildError(f"`{name}` has no requests of its own to limit", hint=hint)
    if limits.tokens is not None and name not in unit.document.models:
        raise BuildError(f"`{name}` is a tool: it has no tokens", hint="use requests_per_minute")


def _model_key(unit: Unit, name: str, client: ModelClient) -> str:
    spec = unit.document.models.get(name)
    if spec is None or not spec.model:
        return f"model:{name}:{client.model}"
    return f"model:{spec.use}:{spec.model}@{','.join(spec.base_url or ())}"
