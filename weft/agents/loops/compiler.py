"""Plan, run, join, then finish or replan: a model writes the graph while it runs.

After LLMCompiler (Kim et al., ICML 2024), with these differences: a step starts when its own text
is complete and its inputs are available, independent of the planner; references keep their types;
the next plan's prompt contains the failures; successful steps are kept and never repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from weft.agents.agent import AgentOptions, Answer, Observation, sampling_of
from weft.agents.chat.model_call import ModelGaveUp, ready
from weft.agents.chat.observations import format_call
from weft.agents.loops.base import LoopAgent, partial_answer
from weft.agents.loops.call_ledger import CallLedger, CallLedgerEntry
from weft.agents.loops.joiner import Finish, Joiner, Replan
from weft.agents.loops.plan_attempt import KnownSchemas, PlanAttempt
from weft.agents.loops.plan_rehearsal import PlanRehearsal
from weft.agents.loops.tool_calls import observation_of
from weft.agents.tools.toolbox import settings_of
from weft.core.errors import AgentError, PlanError
from weft.core.events import Outcome
from weft.core.ids import NodeId, inside
from weft.core.ports import BOUND_THOUGHT_HINT, THOUGHT_HINT, ModelClient, ToolRunner
from weft.core.values import Message
from weft.engine import Edge, Inputs, Node, NodeContext, Policy, best_effort
from weft.planner.compact import COMPACT, planning_messages, refusal
from weft.planner.compile import Results, step_node
from weft.planner.plan import Plan, PlanStep, Ref, Value
from weft.planner.planner import Planner
from weft.planner.progress import PlanProgress, progress_of, promised_schema
from weft.planner.prompt import repair_messages
from weft.planner.text.writer import write_ref


async def observe_steps(
    context: NodeContext,
    steps: Mapping[int, PlanStep],
    outcomes: Mapping[int, Outcome],
    ledger: CallLedger,
) -> tuple[Observation, ...]:
    """All calls of `steps`, which have ended, in the order of the steps.

    A reused result is marked `via="cache"`. A step without a call, or one that failed for another
    reason than its calls, is an observation of its own.
    """
    found: list[Observation] = []
    for number, step in sorted(steps.items()):
        entries = sorted(ledger.of(number), key=lambda entry: _place(entry.node))
        calls = [await _call(context, step, entry) for entry in entries]
        found += calls
        if not calls or (not outcomes[number].ok and all(call.outcome.ok for call in calls)):
            arguments = {name: as_text(value) for name, value in step.arguments.items()}
            found.append(Observation(number, step.tool, arguments, outcomes[number]))
    return tuple(found)


async def _call(context: NodeContext, step: PlanStep, entry: CallLedgerEntry) -> Observation:
    outcome = await context.outcome(entry.node)
    if entry.reused is not None and outcome.ok:
        outcome = replace(outcome, via="cache")
    found = Observation(entry.step, step.tool, entry.arguments, outcome)
    return observation_of(context, entry.reused or entry.node, found)


def _place(node: NodeId) -> tuple[int, str]:
    """A sort key for the items of one map: `s4[9]` before `s4[10]`."""
    return len(node), node


def as_text(value: Value) -> Value:
    """`value` as plain JSON data, with references as text."""
    if isinstance(value, Ref):
        return write_ref(value)
    if isinstance(value, Mapping):
        return {name: as_text(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [as_text(item) for item in value]
    return value


_OPTIONS = AgentOptions()


class RoundDecider(Protocol):
    """Decides after a round whether the question is answered."""

    async def decide(
        self,
        context: NodeContext,
        question: str,
        observations: Sequence[Observation],
        last_round: bool,
        *,
        round: int = 1,  # noqa: A002 - the term of LLMCompiler
    ) -> Finish | Replan:
        """The decision. In the last round it has to be `Finish`. Raises: `AgentError`."""


class CompilerAgent(LoopAgent):
    """The compiling agent: `make_agent("compiler", ...)`.

    `planner` and `joiner` are made from `model` and `options` by default.
    """

    name = "compiler"

    def __init__(
        self,
        tools: ToolRunner,
        model: ModelClient,
        options: AgentOptions = _OPTIONS,
        *,
        planner: Planner | None = None,
        joiner: RoundDecider | None = None,
    ) -> None:
        super().__init__(tools, model, options)
        self.planner = planner or Planner(
            model,
            constrain=options.constrain,
            sampling=sampling_of(options),
            grammar=options.grammar,
            extra=options.extra_body or {},
        )
        self.joiner: RoundDecider = joiner or Joiner(model, options)

    async def answer(self, context: NodeContext, question: str) -> Answer:
        return await _CompilerRun(self, context, question).answer()


class _CompilerRun:
    """The run of a compiling agent on one question."""

    def __init__(self, agent: CompilerAgent, context: NodeContext, question: str) -> None:
        self._agent = agent
        self._context = context
        self._question = question
        self._specs = agent.tools.specs()
        given = agent.options.rehearsal
        self._rehearsal = None if given is None else PlanRehearsal(given, self._specs)
        self._changing = self._rehearsal.changing if self._rehearsal else frozenset[str]()
        self._ledger = CallLedger(agent.tools, agent.options.calls, self._changing)
        self._steps: dict[int, PlanStep] = {}
        self._nodes: dict[int, NodeId] = {}
        self._taken: set[NodeId] = set()
        self._plans: list[Plan] = []

    async def answer(self) -> Answer:
        """Rounds of planning, running and joining, until the joiner finishes."""
        carried: PlanProgress | None = None
        for number in range(1, self._agent.options.rounds + 1):
            before = self._ledger.made
            plan = await self._plan_round(number, carried)
            if await self._refuses(plan):
                return Answer(refusal(plan), (), number, tuple(self._plans))
            outcomes = await self._gather(number, plan)
            if self._rehearsal is not None:
                succeeded = [step for step in plan.steps if outcomes[step.number].ok]
                self._rehearsal.take(succeeded, _values(outcomes))
            calls = await observe_steps(self._context, self._steps, outcomes, self._ledger)
            last = self._is_last(number, before)
            try:
                decision = await self._agent.joiner.decide(
                    self._context, self._question, _once(calls), last, round=number
                )
            except ModelGaveUp as error:
                found = Answer(None, calls, number, tuple(self._plans))
                return partial_answer(error, calls, self._agent.options.schema, found)
            if isinstance(decision, Finish):
                return Answer(decision.value, calls, number, tuple(self._plans), decision.thought)
            if last:
                break
            since = min((step.number for step in plan.steps), default=0)
            steps = [step for _, step in sorted(self._steps.items())]
            carried = progress_of(
                steps, outcomes, self._specs, decision.thought, since=since, made=_changed(calls)
            )
        raise AgentError(
            f"there is no answer after {len(self._plans)} rounds and {self._ledger.made} calls",
            hint="allow more rounds or calls, or ask for less",
        )

    async def _refuses(self, plan: Plan) -> bool:
        """Whether a trained planner has decided that nothing can be called."""
        if plan.steps or self._steps or self._agent.options.schema is not None:
            return False
        return (await ready(self._context, self._agent.model)).plan_form == COMPACT

    def _is_last(self, number: int, before: int) -> bool:
        """Whether another round cannot help: the rounds or calls are used up, or none was new."""
        spent = number == self._agent.options.rounds or self._ledger.left < 1
        return spent or (number > 1 and self._ledger.made == before)

    async def _plan_round(self, number: int, carried: PlanProgress | None) -> Plan:
        """The plan of a round, all of its steps begun. A wrong one is repaired once."""

        def messages(form: str) -> tuple[Message, ...]:
            return planning_messages(
                form,
                self._question,
                self._specs,
                previous=carried,
                instructions=self._agent.options.instructions,
                world=None if self._rehearsal is None else self._rehearsal.world,
            )

        known = dict(carried.known) if carried is not None else {}
        first = self._attempt()
        try:
            plan = await first.plan(
                self._context, f"plan{number}", messages, known, first=self._next_number
            )
            plan = await self._rehearsed(plan)
        except PlanError as error:
            plan = await self._repair_plan(number, known, first, error)
        self._plans.append(plan)
        return plan

    async def _rehearsed(self, plan: Plan) -> Plan:
        """`plan` after its rehearsal, if there is one: its steps begin only now."""
        if self._rehearsal is None:
            return plan
        context = self._context
        outcomes = {step: await context.outcome(node) for step, node in self._nodes.items()}
        plan = await self._rehearsal.rehearsed(
            plan,
            first=self._next_number,
            results=_values(outcomes),
            log=context.log,
            show=context.stream,
        )
        for step in plan.steps:
            self._begin(step)
        return plan

    async def _repair_plan(
        self,
        number: int,
        known: KnownSchemas,
        first: PlanAttempt,
        error: PlanError,
    ) -> Plan:
        """The part of the malformed plan that has begun, with the model's replacement for the rest.

        Of a plan that is to be rehearsed nothing has begun.
        """
        running = first.steps if self._rehearsal is None else []
        repair = repair_messages(first.messages, first.text, error, running)
        begun = {step.number: promised_schema(step, self._specs) for step in running}
        second = self._attempt(corrected=True)
        try:
            rest = await second.plan(
                self._context,
                f"mend{number}",
                lambda _: repair,
                {**known, **begun},
                first=self._next_number,
                instead_of=f"plan{number}",
            )
            rest = await self._rehearsed(rest)
        except PlanError as again:
            raise AgentError(
                f"the plan cannot be used: {error}; nor can its correction: {again}",
                hint=await self._remedy(again),
            ) from again
        return replace(rest, steps=(*running, *rest.steps))

    @property
    def _next_number(self) -> int:
        return max(self._steps, default=0) + 1

    async def _remedy(self, error: PlanError) -> str:
        """A hint after two malformed plans."""
        if error.hint in (THOUGHT_HINT, BOUND_THOUGHT_HINT) or self._rehearsal is not None:
            return error.hint or "add facts, or use a larger model"
        capabilities = await self._agent.model.capabilities()
        if not capabilities.grammar:
            return "use a model or server that can be held to a grammar (constrain)"
        if self._agent.planner.constrain == "never":
            return 'have it held to a grammar: constrain="auto"'
        return error.hint or "ask for less, or use a larger model"

    def _attempt(self, *, corrected: bool = False) -> PlanAttempt:
        agent = self._agent
        self._ledger.next_planning()
        return PlanAttempt(
            agent.planner,
            agent.model,
            self._specs,
            self._begin if self._rehearsal is None else _nothing_yet,
            corrected=corrected,
            changing=self._changing,
        )

    def _begin(self, step: PlanStep) -> None:
        """Add the node of `step` to the running graph."""
        name, agent = f"s{step.number}", self._agent
        while (node := inside(self._context.scope, name)) in self._taken:
            name += "_"  # the number of a step that failed in an earlier round
        streams = [known.number for known in self._steps.values() if known.over is not None]
        self._taken.add(node)
        self._ledger.begin(step)
        made = step_node(
            step,
            self._ledger.call,
            node,
            self._nodes,
            policy=Policy(**settings_of(agent.tools, step.tool)._asdict(), on_failure="skip"),
            streams=streams,
            max_items=agent.options.calls,
        )
        self._steps[step.number] = step
        self._nodes[step.number] = node
        # The ledger has to see its calls: they are restored one by one, not with their node.
        self._context.append([replace(made, recallable=False)])

    async def _gather(self, number: int, plan: Plan) -> dict[int, Outcome]:
        """The outcomes of all steps, once those of `plan` have ended."""
        context = self._context
        if plan.steps:
            node = inside(context.scope, f"gathered{number}")
            edges = tuple(Edge(self._nodes[step.number]) for step in plan.steps)
            context.append([Node(node, _nothing, edges, join=best_effort(), kind="join")])
            await context.outcome(node)
        return {step: await context.outcome(node) for step, node in self._nodes.items()}


async def _nothing(_: NodeContext, __: Inputs) -> None:
    """Returns nothing: the outcomes are read separately."""


def _nothing_yet(_: PlanStep) -> None:
    """Begins nothing: the whole plan is rehearsed first."""


def _values(outcomes: Mapping[int, Outcome]) -> Results:
    """The values of the steps that succeeded, by number."""
    return {number: outcome.value for number, outcome in outcomes.items() if outcome.ok}


def _changed(calls: Sequence[Observation]) -> dict[int, str]:
    """The calls that a person changed, as they were made, by their step."""
    found: dict[int, list[str]] = {}
    for call in calls:
        if call.requested is not None:
            found.setdefault(call.number, []).append(format_call(call))
    return {number: ", ".join(made) for number, made in found.items()}


def _once(calls: Sequence[Observation]) -> list[Observation]:
    """The observations of all rounds for the joiner, in order, without reused results."""
    return [call for call in calls if call.outcome.via != "cache"]
