"""The budget of a study, hard over everything: no call begins once a part of it is spent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import Any

from weft.core.budget import Budget
from weft.core.errors import BudgetExceeded, ModelError
from weft.core.ids import NodeId
from weft.core.ports import Clock, ModelClient, ModelEvent, ModelRequest, UsageMeter
from weft.core.values import Usage
from weft.durability.calls.history import fitted
from weft.durability.rates.clients import CLIENT_PORTS, LimitedClient
from weft.engine.scheduler.effects import current_call_site
from weft.optimisation.candidates import CallBudget
from weft.optimisation.result import Spend
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.boundary import BoundaryModels
from weft.workflow.runtime.models.factory import ModelSource
from weft.workflow.runtime.models.think import ThoughtModel

_CAUTION = 1.25
"""Calls to come may cost this much more than those so far, when a step is weighed."""


@dataclass(slots=True)
class StudyBudget(CallBudget):
    """What steps are weighed against: calls, and what is left of `limits` at their price so far.

    It knows only what finished runs have paid, so that a resumed study weighs every step alike.
    `paid`: by purpose. `elapsed_s`: when the latest of these runs had ended. `sunk`: what was paid
    before the study was given more, for results that the search has not come to again.
    """

    limits: Budget = field(default_factory=Budget)
    paid: dict[str, Spend] = field(default_factory=dict)
    elapsed_s: float = 0.0
    sunk: Spend = field(default_factory=Spend)

    @property
    def left(self) -> int:
        """Calls that may still be made."""
        found = [self.limit - self.spent - self.sunk.calls]
        total = sum(self.paid.values(), self.sunk)
        amounts = (
            (self.limits.tokens, total.tokens),
            (self.limits.money, total.money),
            (self.limits.seconds, self.elapsed_s),
        )
        for limit, spent in amounts:
            if limit is None:
                continue
            if spent >= limit:
                return 0
            if spent and total.calls:
                found.append(int((limit - spent) * total.calls / spent / _CAUTION))
        return min(found)

    def pay(self, purpose: str, spend: Spend, at_s: float) -> None:
        """Note what a finished run has paid; its calls are booked by the step."""
        self.paid[purpose] = self.paid.get(purpose, Spend()) + spend
        self.elapsed_s = max(self.elapsed_s, at_s)


class StudyLedger:
    """What the study has really used, in all its processes; refuses calls beyond the limits.

    `stopped`: why no further call begins; empty while calls may begin. `elapsed`: seconds of work
    on the study. Offline, no call begins at all.
    """

    def __init__(
        self, calls: int, limits: Budget, elapsed: Callable[[], float], *, offline: bool = False
    ) -> None:
        self._most = calls
        self._limits = limits
        self._elapsed = elapsed
        self.calls = 0
        self.usage = Usage()
        self.stopped = "the record has no answer to a call" if offline else ""

    def stop(self, why: str) -> None:
        """Let no further call begin."""
        self.stopped = self.stopped or why

    def begin(self) -> None:
        """Count a call that begins now. Raises: `BudgetExceeded` where it must not."""
        why = self._limits.exceeded(self.usage, self._elapsed())
        if self.calls >= self._most:
            why = f"{self.calls:,} of {self._most:,} model calls made"
        if why:
            self.stop(f"the budget is spent: {why}")
        if self.stopped:
            raise BudgetExceeded(self.stopped)
        self.calls += 1

    def end(self, usage: Usage) -> None:
        """Add what a call has used."""
        self.usage += usage


@dataclass(slots=True)
class RunGate:
    """The model calls of one run of a candidate: counted, at most `most`, with shared `slots`.

    `prompts`: what each node sent last. `waited`: seconds that each node waited for slots that
    other runs had.
    """

    ledger: StudyLedger
    clock: Clock
    most: int
    slots: Mapping[str, asyncio.Semaphore] = field(default_factory=dict)
    calls: int = 0
    prompts: dict[NodeId, str] = field(default_factory=dict)
    waited: dict[NodeId, float] = field(default_factory=dict)

    def models(self, source: ModelSource) -> ModelSource:
        """The models of `source`, whose calls pass this gate."""

        def leaf(unit: Unit, name: str) -> ModelClient:
            client = source.client(unit, name)
            if isinstance(client, ThoughtModel):  # its threads are nodes: their calls pass
                return client.over(lambda model: self._gated(model, name))
            return self._gated(client, name)

        return BoundaryModels(leaf)

    def _gated(self, client: ModelClient, name: str) -> ModelClient:
        made: ModelClient = fitted(GatedClient, CLIENT_PORTS, client)(client, self)
        made.name = name  # type: ignore[attr-defined]
        return made

    def waited_in(self, node: NodeId) -> float:
        """Seconds that `node`, or a node inside it, waited for others' slots."""
        return sum(
            each for place, each in self.waited.items() if place == node or _inside(place, node)
        )

    def prompt_of(self, node: NodeId) -> str:
        """What the node's model was sent last."""
        return self.prompts.get(node, "")


class GatedClient(LimitedClient):
    """Implements `ModelClient`: calls pass a `RunGate`."""

    name = ""

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        gate: RunGate = self._limiter  # type: ignore[assignment]
        site, begun = current_call_site(), gate.clock.now()
        meter = UsageMeter(request)
        async with AsyncExitStack() as stack:
            if self.name in gate.slots:
                await stack.enter_async_context(gate.slots[self.name])
            if site is not None:
                waited = gate.waited.get(site.node, 0.0)
                gate.waited[site.node] = waited + gate.clock.now() - begun
                gate.prompts[site.node] = _text(request)
            if gate.calls >= gate.most:
                hint = "raise `calls_per_case`"
                raise BudgetExceeded(f"more than {gate.most} model calls for a case", hint=hint)
            gate.ledger.begin()
            gate.calls += 1
            try:
                async with aclosing(self._inner.generate(request)) as stream:
                    async for event in stream:
                        meter.take(event)
                        yield event
            except ModelError as error:
                meter.failed(error)
                raise
            finally:
                gate.ledger.end(meter.usage)


def _text(request: ModelRequest) -> str:
    parts = [
        message.content if message.role == "user" else f"[{message.role}]\n{message.content}"
        for message in request.messages
    ]
    return "\n\n".join(parts)


def _inside(node: str, outer: str) -> bool:
    return node.startswith(outer) and node[len(outer)] in "/[#~"


def recorded_spend(data: Mapping[str, Any]) -> Spend:
    """The `Spend` in recorded data."""
    return Spend(int(data["calls"]), int(data["tokens"]), float(data["money"]))
