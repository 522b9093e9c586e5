"""Circuit breakers of a run's tools, servers and models, shared with other runs of the process."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from weft.core.breaker import Breaker
from weft.core.events import BreakerChanged, Event
from weft.core.ports import Clock, ModelClient
from weft.core.ports.journal import Record
from weft.durability.breakers import (
    BreakerChange,
    BreakerGuard,
    Guarded,
    breaker_client,
    clock_of,
    process_breaker,
)
from weft.engine.scheduler.effects import current_call_site
from weft.workflow.document.spec.settings import BreakerSpec
from weft.workflow.document.tool_servers import source_of
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.boundary import BoundaryModels
from weft.workflow.runtime.models.factory import ModelSource


class RunBreakers:
    """The circuit breakers of one run, by the names under which its documents declare what they
    guard.

    Runs of the process that use the same tool or model of the same document, on the same clock,
    share a breaker. `emit` gets an event for each change that a call of this run brings about.
    `past`: records of earlier parts of the run, whose open breakers are open here too.
    """

    def __init__(
        self,
        clock: Clock | None,
        emit: Callable[[Callable[[float], Event]], None],
        past: Iterable[Record] = (),
    ) -> None:
        self._clock = clock_of(clock)
        self._emit = emit
        self._past = {
            (each.workflow, each.kind, each.name): each
            for each in past
            if isinstance(each, BreakerChanged)
        }

    def tool(
        self, unit: Unit, text: str, own: Breaker | None = None, owner: object = None
    ) -> BreakerGuard | None:
        """The guard of the tool, or of its server, that `text` names in `unit`.

        `own`: the breaker of the tool itself, where its declaration has none. `owner`: the object
        that is called, in place of what is declared.
        """
        source = source_of(unit, text)
        name = text if source is None else source[0]
        declared = unit.document.tools.get(name)
        settings = own if declared is None or not declared.breaker else breaker_of(declared.breaker)
        if settings is None:
            return None
        if owner is None and declared is not None and declared.use is not None:
            owner = unit.functions.get(declared.use)
        guarded = Guarded("tool" if source is None else "server", name, unit.document.name)
        return self._guard(guarded, settings, _key(unit, guarded, repr(declared)), owner)

    def models(
        self, inner: ModelSource, given: Container[str] | Mapping[str, Any] = ()
    ) -> ModelSource:
        """The models of `inner`, those with a breaker behind it."""

        def leaf(unit: Unit, name: str) -> ModelClient:
            from weft.workflow.runtime.models.think import ThoughtModel

            client = inner.client(unit, name)
            spec = unit.document.models.get(name)
            if spec is None or spec.breaker is None:
                return client
            owner = client if name in given or name in unit.clients else None
            guarded = Guarded("model", name, unit.document.name)
            key = _key(unit, guarded, repr(spec))
            guard = self._guard(guarded, breaker_of(spec.breaker), key, owner)
            if isinstance(client, ThoughtModel):  # its threads are nodes: their calls are guarded
                return client.over(lambda model: breaker_client(model, guard))
            return breaker_client(client, guard)

        return BoundaryModels(leaf, given)

    def _guard(
        self, guarded: Guarded, settings: Breaker, key: Hashable, owner: object
    ) -> BreakerGuard:
        breaker = process_breaker(self._clock, key, settings, owner)
        before = self._past.get((guarded.workflow, guarded.kind, guarded.name))
        if before is not None and before.state != "closed":
            breaker.restore(self._clock.now(), self._left_s(before))
        return BreakerGuard(guarded, breaker, self._clock, self._changed)

    def _left_s(self, before: BreakerChanged) -> float:
        """Seconds for which a breaker of an earlier process stays open."""
        try:
            until = datetime.fromisoformat(before.retry_at)
            return (until - self._clock.wall()).total_seconds()
        except (ValueError, TypeError):  # half-open: the call that was tried went with its process
            return 0.0

    def _changed(self, guarded: Guarded, change: BreakerChange, reason: str) -> None:
        site = current_call_site()
        if site is None:
            return
        retry_at = ""
        if change.state == "open":
            moment = self._clock.wall() + timedelta(seconds=change.retry_s)
            retry_at = moment.isoformat(timespec="milliseconds")
        what = guarded.kind, guarded.name, change.state
        where = guarded.workflow, retry_at, reason
        self._emit(lambda at_s: BreakerChanged(site.node, *what, at_s, *where))


def breaker_of(spec: BreakerSpec) -> Breaker:
    """The breaker that a document declares."""
    return Breaker(spec.failures, spec.within, spec.after, spec.successes)


def _key(unit: Unit, guarded: Guarded, declared: str) -> Hashable:
    """Equal for what is called the same, and declared the same, in the same document."""
    return str(unit.folder), guarded, declared
