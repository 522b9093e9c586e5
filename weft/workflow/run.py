"""One run of a workflow under way. Puts document, tools, models and engine together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.agents.tools import tool_logs
from weft.core.budget import Budget
from weft.core.errors import BuildError, InputError, ToolError, UnknownReference
from weft.core.events import Listener
from weft.core.ids import NodeId, RunId, run_id
from weft.core.ports import Clock, ModelClient, ResultStore, ToolRunner
from weft.engine import Ask, Graph, Limit, Run, RunOptions
from weft.planner.routing import History
from weft.workflow.check.types import Types
from weft.workflow.compile import Compiler, Names, Services
from weft.workflow.compile.compiler import kept
from weft.workflow.compile.policy import limit_of
from weft.workflow.document.defects import closest
from weft.workflow.imports import build_error
from weft.workflow.inputs import check_inputs
from weft.workflow.models import GivenModels, Models, ModelSource, check_models
from weft.workflow.result import FlowResult, flow_result
from weft.workflow.sources import check_source, sources_in
from weft.workflow.stores import default_store
from weft.workflow.toolset import Toolset
from weft.workflow.unit import Unit
from weft.workflow.values import violation


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a run differs from what the document says; None leaves it to the document.

    listeners     called with every event, in order
    models        clients by name, in the place of declared ones; or a source of all of them.
                  Whoever gives them closes them
    tools         a tool runner whose tools take the place of declared ones of the same names
    clock         time
    store         results kept between runs; by default in the user's cache folder, but none when
                  models or tools are substituted, for theirs are not the results of the next run
    concurrency   at most so many nodes work at once; `limits`: of a resource class
    deadline_s    seconds until the run ends with what it has
    budget        what the run may spend; a `Limit` also says what happens then
    seed          of retries, and of samples without one
    run           the run's id
    """

    listeners: Iterable[Listener] = ()
    models: Mapping[str, ModelClient] | ModelSource | None = None
    tools: ToolRunner | None = None
    clock: Clock | None = None
    store: ResultStore | None = None
    concurrency: int | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    deadline_s: float | None = None
    budget: Budget | Limit | None = None
    seed: int | None = None
    run: RunId | None = None

    @property
    def substitutes(self) -> bool:
        """True when other models or tools than the declared ones take part: fakes, for example."""
        return isinstance(self.models, Mapping) or self.tools is not None


class FlowRun:
    """A run that has been prepared; `wait` carries it out.

    Raises, when it is made: `BuildError` for what is wrong with the workflow, `InputError` for what
    is wrong with the inputs.
    """

    def __init__(self, unit: Unit, inputs: Mapping[str, Any], settings: RunSettings) -> None:
        self._document = unit.document
        self._inputs = check_inputs(unit.document, inputs)
        self._tools = tools = Toolset(settings.tools)
        self._own_models = Models()
        models = _models(unit, settings.models, self._own_models)
        check_unit(unit, tools, settings.models)
        options = _options(unit, settings)
        name = unit.document.name
        self._own_store = None
        if settings.store is None and not settings.substitutes:
            self._own_store = default_store(unit)
        store = settings.store or self._own_store
        history = History(store, scope=name, clock=settings.clock)
        compiler = Compiler(unit, Services(tools, models, options.seed, history))
        nodes, _ = compiler.nodes(unit.document.nodes, Names.of_inputs(self._inputs))
        self._run = Run(
            Graph(name, nodes, kept(unit)),
            options,
            run=settings.run or run_id(name, self._inputs),
            clock=settings.clock,
            store=store,
            listeners=settings.listeners,
        )

    @property
    def id(self) -> RunId:
        """The run's id: the same workflow with the same inputs has the same one, unless given."""
        return self._run.id

    async def wait(self) -> FlowResult:
        """Run to the end, and close what the run has opened.

        A failed node does not raise: look at the result. Cancelling the caller cancels the run.
        """
        try:
            result = await self._run.wait()
        finally:
            await self._tools.aclose()
            await self._own_models.aclose()
            if self._own_store is not None:
                await self._own_store.aclose()
        return flow_result(self._document, self._inputs, result)

    def cancel(self, reason: str = "cancelled") -> None:
        """End the run soon, keeping what is done; `wait` then returns."""
        self._run.cancel(reason)

    @property
    def questions(self) -> Mapping[NodeId, Ask]:
        """The nodes that wait for a person."""
        return self._run.questions

    def answer(self, node: str, value: object) -> None:
        """Answer the question of a node.

        Raises: `UnknownReference` when it asks none, `InputError` when the answer does not fit.
        """
        question = self._run.questions.get(NodeId(node))
        why = violation(value, question.schema) if question is not None else None
        if why is not None:
            raise InputError(f"the answer to {node} does not fit: {why}", node=node)
        self._run.answer(NodeId(node), value)


def check_unit(
    unit: Unit, tools: Toolset, models: Mapping[str, ModelClient] | ModelSource | None = None
) -> None:
    """Import the tools of `unit` and check types, models and limits. Raises: `BuildError`.

    What a given source of models makes of declarations is not checked.
    """
    for included in unit.everything():
        for name in sources_in(included):
            if not tools.replaces(name):
                check_source(included, name)
        if models is None or isinstance(models, Mapping):
            check_models(included, models or ())
    Types(unit, tools).check()
    resources = [*unit.document.models, *unit.document.tools, *tools.resources]
    for name in unit.document.run.limits:
        if name not in resources:
            hint = closest(name, resources) or "it has no models and no tools"
            error = UnknownReference(f"there is no model or tool called `{name}`", hint=hint)
            unit.fail(error, ("run", "limits", name), at_key=True)


async def check_connected(unit: Unit) -> tuple[str, ...]:
    """Like `check_unit`, with the tools that servers really offer: starts and ends them.

    Returns what there is to say of servers, such as tools that cannot be used.

    Raises: `BuildError`.
    """
    tools = Toolset()
    notes: list[str] = []
    try:
        for included in unit.everything():
            for name in sources_in(included):
                try:
                    with tool_logs(notes.append):
                        await tools.start(included, name)
                except (ToolError, BuildError) as error:
                    origin = included.document.tools[name].origin
                    included.fail(build_error(error), ("tools", name, origin), at_key=True)
        check_unit(unit, tools)
    finally:
        await tools.aclose()
    return tuple(notes)


def _models(
    unit: Unit, given: Mapping[str, ModelClient] | ModelSource | None, own: Models
) -> ModelSource:
    if given is None:
        return own
    if not isinstance(given, Mapping):
        return given
    for name in given:
        if name not in unit.document.models:
            hint = closest(name, list(unit.document.models)) or "it has no models"
            raise UnknownReference(f"there is no model called `{name}`", hint=hint)
    return GivenModels(given, own)


def _limit(budget: Budget | Limit | None) -> Limit | None:
    return Limit(budget) if isinstance(budget, Budget) else budget


def _options(unit: Unit, settings: RunSettings) -> RunOptions:
    said = unit.document.run
    deadline_s = said.deadline if settings.deadline_s is None else settings.deadline_s
    return RunOptions(
        settings.concurrency or said.concurrency,
        {**said.limits, **settings.limits},
        deadline_s,
        _limit(settings.budget) or limit_of(said.budget),
        said.seed if settings.seed is None else settings.seed,
    )
