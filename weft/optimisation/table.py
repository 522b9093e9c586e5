"""Outcome tables: the results of nodes by what decides them, shared by all candidates.

The key of a node's result is a digest of what the node is (definition, model, decoder, code), of
the content of its inputs, and of seed and replicate. A candidate runs as any workflow does, with
the table as its result store: what an edit changed runs, and what depends on it, up to where a
value comes out equal. So k independent branches of c options cost k*c model calls a case, and not
k*c^k.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, Final
from weakref import WeakKeyDictionary

from weft.core.errors import BuildError
from weft.core.events import (
    Event,
    NodeFinished,
    NodeRerouted,
    NodeRetrying,
    NodeSpent,
    NodeStarted,
)
from weft.core.ids import NodeId
from weft.core.ports import ModelClient, ResultStore, StoreEntry, ToolRunner
from weft.core.ports.store import MemoryStore
from weft.core.values import Usage
from weft.engine.runner.result_cache import LOOKUP_NODE
from weft.optimisation.edits.draft import RawNode, kind_of, places
from weft.optimisation.edits.patch import AnyFlow, with_document
from weft.workflow import Flow, WorkflowDocument
from weft.workflow.document.check.effects import tool_effects
from weft.workflow.document.rewrite import plain_document
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.models.factory import ModelSource
from weft.workflow.runtime.results.result import FlowResult
from weft.workflow.runtime.tools.toolset import Toolset

_STORED: Final = frozenset(("tool", "call", "model", "reduce"))
"""Kinds of nodes whose results are stored; those around them only put results together."""
_OWN_SEED: Final = frozenset(("seed", "samples", "think"))
"""Keys of nodes whose calls have seeds anyway: their own, or those of the run."""
_REPEATABLE: Final = frozenset(("pure", "idempotent"))


@dataclass(frozen=True, slots=True)
class NodeCost:
    """What a result cost when it was computed: usage, and seconds from start to end."""

    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class TableRun:
    """One candidate on one case. `fresh`: its nodes that ran and whose results are stored now.

    `spent`: what they cost; `whole`: what all nodes cost when each was computed, as an evaluation
    without a table would. `reused`: how many results were taken from the table; `hits`: their keys.
    `usage`: that of each node when it was computed. `seconds`: for each node with a result in the
    table how long it took when it was computed.
    """

    result: FlowResult[Any]
    fresh: tuple[NodeId, ...]
    reused: int
    spent: Usage
    whole: Usage
    seconds: Mapping[NodeId, float]
    usage: Mapping[NodeId, Usage] = field(default_factory=dict)
    hits: Mapping[NodeId, str] = field(default_factory=dict)


class OutcomeTable:
    """The results of nodes of all candidates of a study, in `store`: in memory by default.

        table = OutcomeTable()
        run = await table.run(flow, {"topic": "rivers"}, models={"small": client}, replicate=1)
        run.result["answer"], run.spent.requests

    Runs may go on at the same time: a result that one of them computes is awaited by the others.
    Failures are not stored.
    """

    def __init__(self, store: ResultStore | None = None) -> None:
        self._store = MemoryStore() if store is None else store
        self._pending: dict[str, asyncio.Event] = {}
        self._flows: WeakKeyDictionary[Unit, dict[int | None, AnyFlow]] = WeakKeyDictionary()

    def prepare(
        self, flow: AnyFlow, *, stubs: ToolRunner | None = None, seed: int | None = None
    ) -> AnyFlow:
        """`flow` with every node's result stored, for many runs: checked and compiled once.

        `seed` is that of model nodes without one.

        Raises: `BuildError` for a tool that may act in the world, unless `stubs` has it.
        """
        unit = flow.unit
        if unit not in self._flows:
            check_repeatable(unit, stubs)
        made = self._flows.setdefault(unit, {})
        if seed not in made:
            made[seed] = Flow.of(storing(unit, seed))
        return made[seed]

    async def run(
        self,
        flow: AnyFlow,
        inputs: Mapping[str, Any],
        *,
        seed: int = 0,
        replicate: int = 0,
        seeded: bool = True,
        by_place: bool = False,
        waited: Callable[[NodeId], float] | None = None,
        store: ResultStore | None = None,
        models: ModelSource | Mapping[str, ModelClient] | None = None,
        stubs: ToolRunner | None = None,
        **settings: Any,
    ) -> TableRun:
        """Run `flow` on one case; only what the table does not have is computed.

        `seed` and `replicate` decide the seeds of model calls: candidates with equal ones get
        common random numbers. Without `seeded` nodes without a `seed` send none: for servers that
        take none. `by_place`: a result is that of its node's place, for flows in which seeds depend
        on places. `waited`: the seconds that a node waited for other runs, which are not its own.
        `store` replaces that of the table, for results that only this run is to be told about.
        `stubs` are tools that replace those of the flow; `settings` as for `Flow.run`. Nothing is
        recorded in a journal. Raises: as `prepare` and `Flow.run`.
        """
        own = run_seed(seed, replicate)
        stored = self.prepare(flow, stubs=stubs, seed=own if seeded else None)
        prefix = _prefix(seed, replicate, models, stored.unit)
        view = _RunView(store or self._store, self._pending, prefix, by_place, waited)
        listeners = (*settings.pop("listeners", ()), view.take)
        try:
            result = await stored.start(
                inputs,
                listeners=listeners,
                store=view,
                models=models,
                tools=stubs,
                seed=own,
                durability="none",
                questions="pause",
                **settings,
            ).wait()
        except BaseException:
            view.release()
            raise
        return await view.done(result)


class _RunView:
    """Implements `ResultStore`: the table as one run sees it, which also listens to its events."""

    def __init__(
        self,
        store: ResultStore,
        pending: dict[str, asyncio.Event],
        prefix: str,
        by_place: bool = False,
        waited: Callable[[NodeId], float] | None = None,
    ) -> None:
        self._store = store
        self._pending = pending
        self._prefix = prefix
        self._by_place = by_place
        self._waited = waited
        self._own: dict[str, asyncio.Event] = {}
        self._keys: dict[NodeId, str] = {}
        self._costs: dict[NodeId, NodeCost] = {}
        self._begun: dict[NodeId, float] = {}
        self._fresh: dict[NodeId, str] = {}
        self._hits: dict[NodeId, str] = {}

    async def get(self, key: str) -> StoreEntry | None:
        node = LOOKUP_NODE.get()
        place = f"{self._prefix}{_digest(node)}{key}" if self._by_place else self._prefix + key
        self._keys[node] = place
        while True:
            entry = await self._store.get(place)
            if entry is not None:
                self._hits[node] = place
                self._costs[node] = _cost_in(entry.value)
                return StoreEntry(entry.value["value"])
            if place not in self._pending:
                self._pending[place] = self._own[place] = asyncio.Event()
                return None
            await self._pending[place].wait()

    async def put(self, key: str, value: Any, ttl_s: float | None = None) -> None:
        del ttl_s, key  # a study's results do not expire
        node = LOOKUP_NODE.get()
        place, cost = self._keys[node], self._costs.get(node, NodeCost())
        try:
            await self._store.put(place, {"value": value, "cost": asdict(cost)})
        finally:
            self._let_go(place)

    async def aclose(self) -> None:
        """The table outlives its runs."""

    def take(self, event: Event) -> None:
        """Take in an event of the run."""
        match event:
            case NodeStarted(node=node, at_s=at_s):
                self._begun.setdefault(node, at_s)
            case NodeSpent(node=node, usage=usage):
                self._spent(node, usage)
            case NodeRetrying(node=node) | NodeRerouted(node=node) if node in self._keys:
                self._let_go(self._keys[node])
            case NodeFinished(node=node, outcome=outcome, at_s=at_s) if self._computes(node):
                cost = self._costs.get(node, NodeCost())
                seconds = at_s - self._begun.get(node, at_s)
                if self._waited is not None:
                    seconds = max(0.0, seconds - self._waited(node))
                self._costs[node] = replace(cost, seconds=seconds)
                if outcome.ok and not outcome.via and not outcome.partial:
                    self._fresh[node] = self._keys[node]
                else:
                    self._let_go(self._keys[node])
            case _:
                pass

    def release(self) -> None:
        """Let other runs compute what this one has not stored: it has ended."""
        for place in list(self._own):
            self._let_go(place)

    async def done(self, result: FlowResult[Any]) -> TableRun:
        """The run's summary, once its results are stored."""
        for place in self._fresh.values():
            await self._until_stored(place)
        self.release()
        usage = {node: cost.usage for node, cost in self._costs.items()}
        whole = sum(usage.values(), Usage())
        spent = sum((each for node, each in usage.items() if node not in self._hits), Usage())
        known = (*self._fresh, *self._hits)
        seconds = {node: self._costs[node].seconds for node in known}
        fresh, hits = tuple(self._fresh), dict(self._hits)
        return TableRun(result, fresh, len(hits), spent, whole, seconds, usage, hits)

    def _computes(self, node: NodeId) -> bool:
        """Whether this run computes the result of `node`, and may store it."""
        return node in self._keys and node not in self._hits

    async def _until_stored(self, place: str) -> None:
        """Wait until the result is stored, or the store has not answered for a second."""
        if place in self._own:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._own[place].wait(), 1.0)

    def _spent(self, node: NodeId, usage: Usage) -> None:
        """Count the usage of a node, or of one inside it, for the node whose result is stored."""
        owner = next((known for known in self._keys if _is_inside(node, known)), None)
        place = node if owner is None else owner
        cost = self._costs.get(place, NodeCost())
        self._costs[place] = replace(cost, usage=cost.usage + usage)

    def _let_go(self, place: str) -> None:
        event = self._own.pop(place, None)
        if event is not None:
            event.set()
            del self._pending[place]


def _is_inside(node: str, outer: str) -> bool:
    return node == outer or (node.startswith(outer) and node[len(outer)] in "/[#~")


def run_seed(seed: int, replicate: int) -> int:
    """The seed of a run: common to all candidates, and another for each replicate."""
    if replicate == 0:
        return seed
    digest = hashlib.sha256(f"{seed}:{replicate}".encode()).digest()
    return int.from_bytes(digest[:4])


def _cost_in(entry: Mapping[str, Any]) -> NodeCost:
    return NodeCost(Usage(**entry["cost"]["usage"]), entry["cost"]["seconds"])


@cache
def _digest(node: NodeId) -> str:
    return hashlib.sha256(node.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _prefix(
    seed: int,
    replicate: int,
    models: ModelSource | Mapping[str, ModelClient] | None,
    unit: Unit,
) -> str:
    """What decides results besides the node and its inputs: seed, replicate, and given clients."""
    clients = {**unit.clients, **(models if isinstance(models, Mapping) else {})}
    named = {name: client.model for name, client in clients.items()}
    return hashlib.sha256(json.dumps([seed, replicate, named], sort_keys=True).encode()).hexdigest()


def check_repeatable(unit: Unit, stubs: ToolRunner | None = None) -> None:
    """Raises: `BuildError` for a tool whose calls may not be repeated, without a stub of it.

    A study calls tools again and again, with inputs that no user has asked for.
    """
    tools = Toolset(stubs)
    for found in tool_effects(unit, tools):
        if not found.effects <= _REPEATABLE and not tools.gives(found.tool):
            effect = "once" if "once" in found.effects else "unknown"
            hint = "give a stub of it, or declare its effect where it has none: pure, idempotent"
            what = f"the effect of `{found.tool}` is {effect}: a study would repeat its calls"
            raise BuildError(what, node=found.node, hint=hint)


def storing(unit: Unit, seed: int | None = None) -> Unit:
    """`unit`, and what it includes, with every result stored that a model, tool or function makes.

    `seed` is that of model nodes without one. Conversations are left out: their answers depend on
    what was said before.
    """
    made = with_document(unit, _storing_document(unit.document, seed))
    parts = {name: storing(part, seed) for name, part in unit.includes.items()}
    return replace(made, includes=parts)


def _storing_document(document: WorkflowDocument, seed: int | None) -> WorkflowDocument:
    raw = plain_document(document)
    for place in places(raw).values():
        if _is_stored(place.raw):
            place.raw["cache"] = True
        if seed is not None and place.kind == "model" and not _OWN_SEED & place.raw.keys():
            place.raw["seed"] = seed
    return WorkflowDocument.model_validate(raw)


def _is_stored(raw: RawNode) -> bool:
    return kind_of(raw) in _STORED and "conversation" not in raw
