"""Plan, run, join, then finish or plan again: a model writes the graph while it runs.

After LLMCompiler (Kim et al. 2024), with these differences: a step starts when its own text is
complete and its inputs are there, whatever the planner does; references keep their types; failures
are told to whoever plans again; what succeeded is carried on and never done twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from weft.agents.agent import AgentOptions, Answer, Observation
from weft.agents.loops.decision import Finish, Replan
from weft.agents.loops.joiner import Joiner
from weft.agents.loops.ledger import Ledger
from weft.agents.loops.observing import observed
from weft.agents.loops.partial import ended, partial_answer
from weft.agents.loops.planning import Known, Planning
from weft.agents.loops.turn import ModelGaveUp
from weft.agents.slots import resource_of
from weft.core.errors import AgentError, PlanError
from weft.core.events import Outcome
from weft.core.ids import NodeId, inside
from weft.core.ports import ModelClient, Sampling, ToolRunner
from weft.core.values import Message
from weft.engine import Edge, Inputs, Node, NodeContext, Partial, Policy, Work, best_effort
from weft.engine.cassette import GuardedTools
from weft.planner.carried import Carried, carry, promised
from weft.planner.compile import step_node
from weft.planner.mending import mending
from weft.planner.plan import Plan, Step
from weft.planner.planning import Planner
from weft.planner.prompt import plan_messages

_OPTIONS = AgentOptions()


class Decides(Protocol):
    """Whoever says, when a round is over, whether the question is answered."""

    async def decide(
        self,
        context: NodeContext,
        question: str,
        observations: Sequence[Observation],
        last_round: bool,
        *,
        round: int = 1,  # noqa: A002 - the word for it
    ) -> Finish | Replan:
        """The decision. In the last round it has to be `Finish`. Raises: `AgentError`."""


class CompilerAgent:
    """The agent that compiles: `make_agent("compiler", ...)`.

    `planner` and `joiner` are made from `model` and `options`, unless they are given.
    """

    name = "compiler"

    def __init__(
        self,
        tools: ToolRunner,
        model: ModelClient,
        options: AgentOptions = _OPTIONS,
        *,
        planner: Planner | None = None,
        joiner: Decides | None = None,
    ) -> None:
        sampling = Sampling(options.max_tokens, options.temperature)
        self.tools = GuardedTools(tools)
        self.model = model
        self.options = options
        self.planner = planner or Planner(
            model, constrain=options.constrain, sampling=sampling, grammar=options.grammar
        )
        self.joiner: Decides = joiner or Joiner(model, options)

    def work(self, question: str) -> Work:
        """See `Agent.work`."""

        async def work(context: NodeContext, _: Inputs) -> Answer | Partial:
            return ended(await _Job(self, context, question).answer())

        return work


class _Job:
    """The work on one question."""

    def __init__(self, agent: CompilerAgent, context: NodeContext, question: str) -> None:
        self._agent = agent
        self._context = context
        self._question = question
        self._specs = agent.tools.specs()
        self._ledger = Ledger(agent.tools, agent.options.calls)
        self._steps: dict[int, Step] = {}
        self._nodes: dict[int, NodeId] = {}
        self._taken: set[NodeId] = set()
        self._plans: list[Plan] = []

    async def answer(self) -> Answer:
        """Rounds of planning, running and joining, until the joiner is content."""
        carried: Carried | None = None
        for number in range(1, self._agent.options.rounds + 1):
            before = self._ledger.made
            plan = await self._planned(number, carried)
            outcomes = await self._gathered(number, plan)
            calls = await observed(self._context, self._steps, outcomes, self._ledger)
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
            carried = carry(steps, outcomes, self._specs, decision.thought, since=since)
        raise AgentError(
            f"there is no answer after {len(self._plans)} rounds and {self._ledger.made} calls",
            hint="allow more rounds or calls, or ask for less",
        )

    def _is_last(self, number: int, before: int) -> bool:
        """Whether another round cannot help: none is left, no call is, or none was made that is
        new."""
        spent = number == self._agent.options.rounds or self._ledger.left < 1
        return spent or (number > 1 and self._ledger.made == before)

    async def _planned(self, number: int, carried: Carried | None) -> Plan:
        """The plan of a round, all of its steps begun. A malformed one is mended once."""
        messages = plan_messages(
            self._question,
            self._specs,
            previous=carried,
            instructions=self._agent.options.instructions,
        )
        known = dict(carried.known) if carried is not None else {}
        first = self._planning()
        try:
            plan = await first.plan(
                self._context, f"plan{number}", messages, known, first=self._next_number
            )
        except PlanError as error:
            plan = await self._mended(number, messages, known, first, error)
        self._plans.append(plan)
        return plan

    async def _mended(
        self,
        number: int,
        messages: tuple[Message, ...],
        known: Known,
        first: Planning,
        error: PlanError,
    ) -> Plan:
        """What could be read of the malformed plan, and what the model writes in its place."""
        told = mending(messages, first.text, error, first.steps)
        begun = {step.number: promised(step, self._specs) for step in first.steps}
        second = self._planning(corrected=True)
        try:
            rest = await second.plan(
                self._context,
                f"mend{number}",
                told,
                {**known, **begun},
                first=self._next_number,
                instead_of=f"plan{number}",
            )
        except PlanError as again:
            raise AgentError(
                f"the plan is malformed: {error}; and so is its correction: {again}",
                hint=await self._remedy(again),
            ) from again
        return replace(rest, steps=(*first.steps, *rest.steps))

    @property
    def _next_number(self) -> int:
        return max(self._steps, default=0) + 1

    async def _remedy(self, error: PlanError) -> str:
        """What may help a model that wrote two malformed plans."""
        offered = await self._agent.model.capabilities()
        if not offered.grammar:
            return "use a model or server that can be held to a grammar (constrain)"
        if self._agent.planner.constrain == "never":
            return 'have it held to a grammar: constrain="auto"'
        return error.hint or "ask for less, or use a larger model"

    def _planning(self, *, corrected: bool = False) -> Planning:
        agent = self._agent
        self._ledger.next_planning()
        return Planning(agent.planner, agent.model, self._specs, self._begin, corrected=corrected)

    def _begin(self, step: Step) -> None:
        """Add the node of `step` to the running graph."""
        name = f"s{step.number}"
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
            policy=Policy(resource=resource_of(self._agent.tools, step.tool), on_failure="skip"),
            streams=streams,
            max_items=self._agent.options.calls,
        )
        self._steps[step.number] = step
        self._nodes[step.number] = node
        # The ledger has to learn of its calls: they are recalled one by one, not with their node.
        self._context.append([replace(made, recallable=False)])

    async def _gathered(self, number: int, plan: Plan) -> dict[int, Outcome]:
        """The outcomes of all steps, once those of `plan` have ended, in whatever way."""
        context = self._context
        if plan.steps:
            node = inside(context.scope, f"gathered{number}")
            edges = tuple(Edge(self._nodes[step.number]) for step in plan.steps)
            context.append([Node(node, _nothing, edges, join=best_effort(), kind="join")])
            await context.outcome(node)
        return {step: await context.outcome(node) for step, node in self._nodes.items()}


async def _nothing(_: NodeContext, __: Inputs) -> None:
    """Takes no value: outcomes tell more."""


def _once(calls: Sequence[Observation]) -> list[Observation]:
    """What a joiner is told, of all rounds and in order: a result that was reused only once."""
    return [call for call in calls if call.outcome.via != "cache"]
