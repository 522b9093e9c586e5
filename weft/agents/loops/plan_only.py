"""The plan alone: a model writes it, and no call is made."""

from __future__ import annotations

from weft.agents.agent import AgentOptions, Answer, sampling_of
from weft.agents.loops.base import LoopAgent
from weft.agents.loops.plan_attempt import PlanAttempt
from weft.agents.loops.plan_rehearsal import PlanRehearsal
from weft.core.errors import AgentError, PlanError
from weft.core.ports import ModelClient, ToolRunner
from weft.core.values import Message
from weft.engine import NodeContext
from weft.planner.compact import planning_messages
from weft.planner.plan import Plan, PlanStep
from weft.planner.planner import Planner
from weft.planner.prompt import repair_messages
from weft.planner.text.writer import write

_OPTIONS = AgentOptions()


class PlanAgent(LoopAgent):
    """The planning agent: `make_agent("plan", ...)`. Its answer is the text of its plan.

    A malformed plan is written again once. Tools need no function.
    """

    name = "plan"

    def __init__(
        self, tools: ToolRunner, model: ModelClient, options: AgentOptions = _OPTIONS
    ) -> None:
        super().__init__(tools, model, options)
        self.planner = Planner(
            model,
            constrain=options.constrain,
            sampling=sampling_of(options),
            grammar=options.grammar,
            extra=options.extra_body or {},
        )

    async def answer(self, context: NodeContext, question: str) -> Answer:
        specs, given = self.tools.specs(), self.options.rehearsal
        rehearsal = None if given is None else PlanRehearsal(given, specs)

        def messages(form: str) -> tuple[Message, ...]:
            return planning_messages(
                form,
                question,
                specs,
                instructions=self.options.instructions,
                world=None if rehearsal is None else rehearsal.world,
            )

        first = self._attempt(rehearsal)
        try:
            plan = await self._rehearsed(
                context, rehearsal, await first.plan(context, "plan1", messages, {})
            )
        except PlanError as error:
            repair = repair_messages(first.messages, first.text, error, ())
            second = self._attempt(rehearsal, corrected=True)
            try:
                plan = await second.plan(context, "mend1", lambda _: repair, {}, instead_of="plan1")
                plan = await self._rehearsed(context, rehearsal, plan)
            except PlanError as again:
                raise AgentError(
                    f"the plan cannot be used: {error}; nor can its correction: {again}",
                    hint=again.hint or "ask for less, or use a larger model",
                ) from again
        return Answer(write(plan), plans=(plan,))

    async def _rehearsed(
        self, context: NodeContext, rehearsal: PlanRehearsal | None, plan: Plan
    ) -> Plan:
        if rehearsal is None:
            return plan
        return await rehearsal.rehearsed(
            plan, first=1, results={}, log=context.log, show=context.stream
        )

    def _attempt(self, rehearsal: PlanRehearsal | None, *, corrected: bool = False) -> PlanAttempt:
        changing = frozenset[str]() if rehearsal is None else rehearsal.changing
        return PlanAttempt(
            self.planner,
            self.model,
            self.tools.specs(),
            _ignore,
            corrected=corrected,
            changing=changing,
        )


def _ignore(_: PlanStep) -> None:
    """A written step begins nothing."""
