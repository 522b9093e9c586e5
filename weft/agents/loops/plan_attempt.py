"""One attempt at a plan: a node that streams a plan and begins each step as soon as it is written.

A plan that keeps repeating calls is ended there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from weft.agents.chat.model_call import ready, with_node_context
from weft.agents.loops.tool_calls import repeatable
from weft.core.errors import AgentError, InternalError, PlanError
from weft.core.ids import inside
from weft.core.ports import ModelClient, slots_of
from weft.core.values import JsonSchema, Message, ToolSpec
from weft.engine import ALL, Edge, Inputs, Node, NodeContext, Policy, best_effort
from weft.planner.plan import Plan, PlanStep
from weft.planner.planner import Planner
from weft.planner.text.writer import write_step

_REPEATS: Final = 2
"""The number of steps that may repeat a call before the plan ends."""

KnownSchemas = Mapping[int, JsonSchema | None]
MessagesFor = Callable[[str], tuple[Message, ...]]
"""The messages that ask for a plan, by the model's `plan_form`."""


class PlanAttempt:
    """One attempt at a plan. `text` is the model's text so far, `steps` its readable steps.

    `messages` are those that asked for it. `corrected`: it follows a failed attempt, with the error
    in its prompt. Calls of `changing` tools may be repeated: they find another world each time.
    """

    def __init__(
        self,
        planner: Planner,
        model: ModelClient,
        tools: Sequence[ToolSpec],
        begin: Callable[[PlanStep], None],
        *,
        corrected: bool = False,
        changing: frozenset[str] = frozenset(),
    ) -> None:
        self._changing = changing
        self._planner = planner
        self._model = model
        self._tools = tools
        self._begin = begin
        self._pieces: list[str] = []
        self._error: PlanError | None = None
        self.messages: tuple[Message, ...] = ()
        self.steps: list[PlanStep] = []
        self._corrected = corrected
        self._numbers: dict[str, int] = {}
        self._repeats = 0
        self._repeatable = repeatable(tools)

    @property
    def text(self) -> str:
        """The model's text so far."""
        return "".join(self._pieces)

    async def plan(
        self,
        context: NodeContext,
        name: str,
        messages: MessagesFor,
        known: KnownSchemas,
        *,
        first: int = 1,
        instead_of: str | None = None,
    ) -> Plan:
        """The plan that the model writes in the node `name` inside the scope of `context`.

        Its numbers begin with `first`. `instead_of` names the node of a failed attempt.

        Raises: `PlanError` when it is malformed; `AgentError` when there is none.
        """

        async def work(own: NodeContext, _: Inputs) -> Plan:
            try:
                return await self._stream(own, messages, known, first)
            except PlanError as error:
                self._error = error
                raise

        node = inside(context.scope, name)
        policy = Policy(resource=slots_of(self._model), spends=True, on_failure="skip")
        edges = () if instead_of is None else (Edge(inside(context.scope, instead_of)),)
        join = best_effort() if edges else ALL
        context.append([Node(node, work, edges, join=join, policy=policy, kind="model")])
        outcome = await context.outcome(node)
        if isinstance(outcome.value, Plan):
            return outcome.value
        if self._error is not None:
            raise self._error
        raise AgentError(
            f"there is no plan: {outcome.failure or outcome.status}",
            hint="give it a larger budget" if outcome.status == "skipped" else None,
        )

    async def _stream(
        self, own: NodeContext, messages: MessagesFor, known: KnownSchemas, first: int
    ) -> Plan:
        self.messages = messages((await ready(own, self._model)).plan_form)

        def show(text: str, tokens: int) -> None:
            self._pieces.append(text)
            own.stream(text, tokens)

        stream = self._planner.stream(
            self.messages,
            self._tools,
            known,
            first=first,
            extras=lambda request: with_node_context(request, own),
            on_text=show,
            on_usage=own.spend,
            on_note=own.log,
        )
        async with aclosing(stream) as parts:
            async for part in parts:
                if isinstance(part, Plan):
                    return part
                if self._ends(part):
                    own.log(f"the plan ends before step {part.number}: it repeats its calls")
                    return Plan(tuple(self.steps))
                self.steps.append(part)
                self._begin(part)
        raise InternalError("the planner ended without a plan", node=own.node)

    def _ends(self, step: PlanStep) -> bool:
        """Whether the plan ends before `step`, because it repeats itself.

        Raises: `PlanError` for the first repeated call that may have another effect.
        """
        if step.tool in self._changing:
            return False
        number = self._numbers.setdefault(_call(step), step.number)
        if number == step.number:
            return False
        self._repeats += 1
        if step.tool in self._repeatable:
            return self._repeats > _REPEATS
        if self._corrected:
            return True
        raise PlanError(
            f"step {step.number} makes the same call as step {number}, and {step.tool} may have its"
            " effect again",
            line=step.line,
            step=step.number,
            hint=f"refer to ${number}, or call it with something else",
        )


def _call(step: PlanStep) -> str:
    """A text that is equal for equal calls under equal conditions."""
    arguments = dict(sorted(step.arguments.items()))
    return write_step(replace(step, number=0, arguments=arguments))
