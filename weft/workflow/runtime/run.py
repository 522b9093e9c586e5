"""One run of a workflow: composes document, tools, models and engine."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Generic

from weft.cluster.settings import LOCAL
from weft.core.calls import CallEvent
from weft.core.errors import InputError, UnknownReference, WeftError
from weft.core.events import Event, NodeLogged
from weft.core.ids import NodeId, RunId, run_id
from weft.core.loggers import logger
from weft.core.ports import ModelClient, ToolRunner
from weft.core.ports.rates import RateStore
from weft.durability.calls import RecordRedactor
from weft.durability.calls.tools import unrecorded_log
from weft.durability.rates import process_rates
from weft.engine import AskHuman, Graph, Run, RunOptions
from weft.engine.scheduler.effects import EffectLedger
from weft.validation import answer_violation
from weft.workflow.compile import Services
from weft.workflow.compile.sources import SourceDigests
from weft.workflow.document.inputs import check_inputs, plain_inputs
from weft.workflow.document.secrets import redactor_of
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.answering import RunAnswers
from weft.workflow.runtime.boundary import RecordingBoundary, ReplayBoundary, recorded_models
from weft.workflow.runtime.breakers import RunBreakers
from weft.workflow.runtime.compiled import check_limits, check_unit, default_store
from weft.workflow.runtime.conversations import conversation_tools
from weft.workflow.runtime.models.factory import GivenModels, Models, ModelSource, unset_keys
from weft.workflow.runtime.options import RunSettings
from weft.workflow.runtime.rates import RunRates, is_rate
from weft.workflow.runtime.recording import PriorRun, RunRecording
from weft.workflow.runtime.results.result import FlowResult, Out, flow_result, typed_result
from weft.workflow.runtime.run_log import run_log
from weft.workflow.runtime.telemetry import CallListener, run_spans
from weft.workflow.runtime.tools.placement import ToolPlacement, placement_of
from weft.workflow.runtime.tools.toolset import Toolset

if TYPE_CHECKING:
    from weft.agents.agent import Answer
    from weft.planner.routing import ToolHistory
    from weft.reasoning.thought import Thought

_logger = logger("runs")


class FlowRun(Generic[Out]):
    """A prepared run; `wait` carries it out.

    With `past` it continues that run, or builds on it. It is recorded from here on: a run that is
    never awaited stays in its journal as interrupted.

    Raises, when it is made: `BuildError` for defects of the workflow, `InputError` for those of the
    inputs, `StoreError` when its journal cannot be used.

    `result` is set once it has ended. It has real values; listeners receive redacted ones, as
    `redacted` returns them. `findings`: the full results of nodes that think or run an agent, by
    id; the nodes' values are only the answers.
    """

    def __init__(
        self,
        unit: Unit,
        inputs: object,
        settings: RunSettings,
        past: PriorRun | None = None,
        stage: ReplayBoundary | None = None,
    ) -> None:
        self.result: FlowResult[Out] | None = None
        self.findings: dict[NodeId, Thought | Answer] = {}
        self._inputs = check_inputs(unit.document, plain_inputs(inputs, unit.types.inputs))
        self._types = unit.types
        self._document = unit.document
        placement = placement_of(unit, LOCAL if stage is not None else settings.on)
        self._breakers = RunBreakers(settings.clock, self._emit, past.records if past else ())
        self._tools = self._toolset(settings.tools, stage, placement)
        self._own_models = Models()
        models = _models(unit, settings.models, self._own_models)
        if stage is not None:
            models = stage.models
        flow = check_unit(unit, self._tools, settings.models if stage is None else models)
        _warn_of_unset_keys(unit, settings.models if stage is None else models)
        if settings.limits:
            check_limits(unit, self._tools, settings.limits)
        durability = settings.durability_of(unit)
        digests = None  # not needed without a record or a history
        if past is not None or durability != "none":
            digests = SourceDigests() if past is None else past.digests or SourceDigests()
        compiled = flow.compiled(digests)
        self._outputs = compiled.outputs
        self._portable = not unit.functions and not unit.clients
        graph = compiled.graph(self._inputs)
        self._own_store = None
        if compiled.needs_store and settings.store is None and not settings.substitutes:
            self._own_store = default_store()
        self._spans = run_spans()
        redactor = past.redactor if past is not None else redactor_of(unit)
        self.redacted = redactor.redact
        self._redact = RecordRedactor(redactor)
        self._recording: RunRecording | None = None
        if durability != "none":
            self._recording = RunRecording(
                unit, self._inputs, settings, compiled, past, redactor, self._redact, self._spans
            )
        try:
            given = settings.models if isinstance(settings.models, Mapping) else ()
            if self._recording is not None:
                models = self._limited(unit, settings, models, given)
                models = self._recording.intercept_calls(self._tools, models, given, self._log)
            elif stage is None:
                models = self._limited(unit, settings, models, given)
                models = self._unrecorded(graph.name, models, given)
            self._conversations = None
            if compiled.has_conversations:
                journal = None if self._recording is None else self._recording.journal
                self._conversations = self._tools.at_boundary(
                    conversation_tools(journal, self._recorded_id, redactor, stage is not None)
                )
            self._run = self._prepared(graph, settings.options(unit), settings, models, past)
        except BaseException:
            self._withdraw()
            raise

    def _toolset(
        self, given: ToolRunner | None, stage: ReplayBoundary | None, placement: ToolPlacement
    ) -> Toolset:
        if stage is not None:  # what a breaker refused is in the record
            return Toolset(given, stage.tools, placement)
        return Toolset(given, None, placement, self._breakers.tool)

    def _prepared(
        self,
        graph: Graph,
        options: RunOptions,
        settings: RunSettings,
        models: ModelSource,
        past: PriorRun | None,
    ) -> Run:
        recording, store = self._recording, settings.store or self._own_store

        @cache
        def history() -> ToolHistory:
            from weft.planner.routing import ToolHistory

            return ToolHistory(store, scope=graph.name, clock=settings.clock)

        waits = settings.questions == "wait" or settings.questions is None
        self._answers = RunAnswers(settings.answers, settings.answer, waits=waits)
        answering = [self._answers.subscription] if self._answers.needed else []
        services = Services(
            self._tools,
            models,
            history,
            options.seed,
            findings=self.findings,
            conversations=self._conversations,
        )
        if recording is not None:
            run = recording.run
        else:
            run = RunId(settings.run or run_id(graph.name, self._inputs))
        if recording is not None:
            self._tools.settle = recording.recorder.settle
        made = Run(
            graph,
            options,
            run=run,
            clock=settings.clock,
            store=store,
            listeners=[
                *settings.listeners,
                *answering,
                *filter(None, (self._spans, run_log(run))),
            ],
            recall=None if past is None else past.recall,
            recorder=None if recording is None else recording.recorder,
            redact=self._redact,
            effects=EffectLedger(guarded=True) if past is None else past.effects(),
            services=services,
            leaves=not waits and not self._answers.needed,
        )
        self._answers.attach(made)
        return made

    def _limited(
        self, unit: Unit, settings: RunSettings, models: ModelSource, given: Container[str]
    ) -> ModelSource:
        """Let calls of tools, and of the returned models, wait for their rate limits.

        Behind these are the circuit breakers of the models.
        """
        if any(_has_breaker(each) for each in unit.everything()):
            models = self._breakers.models(models, given)
        limits = settings.limits_of(unit)
        if not any(map(is_rate, limits.values())):
            return models
        store = process_rates(settings.clock)
        if self._recording is not None and isinstance(self._recording.journal, RateStore):
            store = self._recording.journal
        rates = RunRates(unit, limits, store, settings.clock, self._log)
        self._tools.limit(rates.tool)
        return rates.models(models, given)

    def _unrecorded(self, name: str, models: ModelSource, given: Container[str]) -> ModelSource:
        """Put an in-process boundary around the run, whose calls only spans observe.

        Returns the models behind it.
        """
        observer = CallListener(self._spans)

        async def tell(event: CallEvent, _: bool) -> None:
            for redacted in self._redact(event):
                observer.tell(redacted)

        if self._spans is None:
            self._tools.put(RecordingBoundary(unrecorded_log(name)))
            return models
        log = unrecorded_log(name, lambda: self._run.elapsed_s, tell)
        self._tools.put(RecordingBoundary(log))
        return recorded_models(models, log, given)

    @property
    def id(self) -> RunId:
        """The run's id: derived from the workflow's name and the inputs, unless it was given."""
        return self._run.id

    def _recorded_id(self) -> RunId:
        assert self._recording is not None
        return self._recording.run

    @property
    def recorded(self) -> bool:
        """Whether a journal has the run: it can be resumed, replayed and compared."""
        return self._recording is not None

    @property
    def suspended(self) -> bool:
        """Whether it was left because its journal was not writable; it can be resumed."""
        return self._recording is not None and self._recording.recorder.suspended

    @property
    def recalled_calls(self) -> int:
        """How many calls of models and tools were answered from earlier parts."""
        return 0 if self._recording is None else self._recording.recalled_calls

    async def wait(self) -> FlowResult[Out]:
        """Run to the end, and close what the run opened.

        A failed node does not raise: look at the result. Cancelling the caller cancels the run.

        Raises: `InputError` for a given answer that does not fit, what an `answer` function raises;
        `PlacementError` before it begins, where the cluster has no node for a tool; the journal has
        nothing of a new run then.
        """
        try:
            await self._check_placement()
            result = await self._run.wait()
        finally:
            self._answers.close()
            await self._tools.aclose()
            await self._own_models.aclose()
            if self._own_store is not None:
                await self._own_store.aclose()
            self._close_record()
        if self._answers.mistake is not None:
            raise self._answers.mistake
        untyped = flow_result(self._document, self._outputs, self._inputs, result)
        if untyped.questions:
            untyped = replace(untyped, reasons=(*untyped.reasons, self._way_on))
        self.result = typed_result(untyped, self._types)
        return self.result

    async def _check_placement(self) -> None:
        try:
            await self._tools.check_placement()
        except WeftError:
            self._withdraw()
            raise

    @property
    def _way_on(self) -> str:
        """How to continue a run that was left at a question."""
        if not self.recorded:
            return "it is not recorded: give `answers`, or an `answer` function, to a new run"
        if self._portable:
            return f"`weft answer {self.id} NODE VALUE`, then `weft resume {self.id}`"
        return f"go on in Python: `flow.resume({self.id!r}, answers={{NODE: VALUE}})`"

    def cancel(self, reason: str = "cancelled", node: str | None = None) -> None:
        """End the run soon, keeping finished nodes; `wait` then returns. Or end one `node` of it.

        Raises: `UnknownReference` for a node that the run does not have.
        """
        self._run.cancel(reason, None if node is None else NodeId(node))

    def pause(self, reason: str) -> None:
        """End this process's part of the run soon; in its record the run has not ended.

        For an unrecorded run, this is `cancel`.
        """
        if self._recording is not None:
            self._recording.recorder.leave()
        self._run.cancel(reason)

    def drain(self, reason: str = "drained") -> None:
        """Start no more nodes, and end this process's part of the run when running ones have ended.

        In its record the run has not ended then, unless these were the last. An unrecorded run is
        cancelled at that moment.
        """
        self._run.drain(reason)

    @property
    def questions(self) -> Mapping[NodeId, AskHuman]:
        """The nodes that wait for a person."""
        return self._run.questions

    def answer(self, node: str, value: object) -> None:
        """Answer the question of a node.

        Raises: `UnknownReference` when it asks none, `InputError` when the answer does not fit.
        """
        question = self._run.questions.get(NodeId(node))
        why = answer_violation(value, question.schema) if question is not None else None
        if why is not None:
            raise InputError(f"the answer to {node} does not fit: {why}", node=node)
        self._run.answer(NodeId(node), value)

    def decline(self, node: str) -> None:
        """Nobody answers the question of `node` here.

        The run is left, with the status `asking`, where only such questions can continue it.
        """
        self._run.decline(NodeId(node))

    def _log(self, node: NodeId, text: str) -> None:
        self._run.emit(NodeLogged(node, text, self._run.elapsed_s))

    def _emit(self, event: Callable[[float], Event]) -> None:
        self._run.emit(event(self._run.elapsed_s))

    def _withdraw(self) -> None:
        """Close the record of a run that is refused: a new one leaves nothing in its journal."""
        if self._recording is not None:
            self._recording.withdraw()

    def _close_record(self) -> None:
        if self._recording is not None:
            self._recording.close()


def _warn_of_unset_keys(unit: Unit, models: Mapping[str, ModelClient] | ModelSource | None) -> None:
    if models is None or isinstance(models, Mapping):
        for note in unset_keys(unit, models or ()):
            _warn_once(note)


@cache
def _warn_once(note: str) -> None:
    """Log a warning, once in this process: a server runs the same workflow again and again."""
    _logger.warning(note)


def _has_breaker(unit: Unit) -> bool:
    return any(spec.breaker is not None for spec in unit.document.models.values())


def _models(
    unit: Unit, given: Mapping[str, ModelClient] | ModelSource | None, own: Models
) -> ModelSource:
    if given is None:
        return own
    if not isinstance(given, Mapping):
        return given
    for name in given:
        if name not in unit.document.models:
            hint = choice_hint(name, list(unit.document.models)) or "it has no models"
            raise UnknownReference(f"there is no model called `{name}`", hint=hint)
    return GivenModels(given, own)
