"""An agent: it answers a question with tools and a model, as a node function of the engine.

Also the one plan that the rounds of an agent amount to. The loops are in `weft.agents.loops`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from weft.core.errors import AgentError
from weft.core.events import Listener, Outcome
from weft.core.ids import NodeId, run_id
from weft.core.ports import Clock, ResultStore
from weft.core.values import JsonSchema
from weft.engine import Graph, Node, NodeFn, Run, RunOptions, RunResult
from weft.planner.grammar.limits import Constrain, GrammarLimits
from weft.planner.plan import Plan, PlanStep, Ref, renumber_ref, renumber_step
from weft.planner.text.writer import write_step


@dataclass(frozen=True, slots=True)
class Observation:
    """One call that ended, or a step that came to nothing without a call.

    `number` is the step it belongs to, counted through all rounds; the calls of a map share it.
    `arguments` are what the tool got; of a step without a call, what was written, with its
    references as text (`"$3.price"`).
    """

    number: int
    tool: str
    arguments: Mapping[str, Any]
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Answer:
    """What an agent came to.

    value    the answer: text, or what `AgentOptions.schema` describes
    calls    every call that was made, in the order of the steps
    rounds   how often it planned, or asked its model for calls
    plans    the plans that were carried out, for agents that plan
    thought  why this is the answer, in the model's words
    partial  why it is not all of the answer: the model gave none, so these are results of calls
    """

    value: Any
    calls: tuple[Observation, ...] = ()
    rounds: int = 1
    plans: tuple[Plan, ...] = ()
    thought: str = ""
    partial: str = ""


_GRAMMAR: Final = GrammarLimits()


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How an agent goes about its work.

    rounds        how often it may plan, or ask its model for several calls at once; an agent that
                  makes one call at a time is bounded by `calls` alone
    calls         how many tool calls it may make in all
    schema        the answer is JSON of this shape, and the value typed; None: text
    constrain     how firmly a planning model is held to the language of plans
    grammar       how long a value may be, where a model is held to it
    temperature   of all its model calls; 0 is greedy
    max_tokens    the longest answer of one model call
    instructions  what the model is told besides, as the system's word

    Raises: `ValueError` when a number is out of range.
    """

    rounds: int = 4
    calls: int = 64
    schema: JsonSchema | None = None
    constrain: Constrain = "auto"
    grammar: GrammarLimits = _GRAMMAR
    temperature: float = 0.0
    max_tokens: int = 1024
    instructions: str = ""

    def __post_init__(self) -> None:
        for name, least in (("rounds", 1), ("calls", 0), ("temperature", 0), ("max_tokens", 1)):
            value = getattr(self, name)
            if not value >= least:
                raise ValueError(f"an agent's {name} must be {least} or more, got {value}")


class Agent(Protocol):
    """A way of answering questions. May work on many questions at once."""

    @property
    def name(self) -> str:
        """What `make_agent` calls it."""

    def work(self, question: str) -> NodeFn:
        """An engine work whose value is an `Answer`.

        It appends its model and tool calls as nodes of its own, so budgets, cancellation and events
        are the run's. Raises, in the node: `AgentError` when it ends without an answer.
        """


@dataclass(frozen=True, slots=True)
class AgentResult:
    """The end of an agent's run; `answer` is None when it has none."""

    answer: Answer | None
    result: RunResult

    def value(self) -> Any:
        """The answer's value. Raises: `AgentError`, saying why there is none."""
        if self.answer is None:
            why = "; ".join(self.result.reasons) or f"the run was {self.result.status}"
            raise AgentError(f"there is no answer: {why}")
        return self.answer.value


_OPTIONS = RunOptions()


async def run_agent(
    agent: Agent,
    question: str,
    *,
    options: RunOptions = _OPTIONS,
    listeners: Iterable[Listener] = (),
    clock: Clock | None = None,
    store: ResultStore | None = None,
) -> AgentResult:
    """Run `agent` on `question` to its end. A failure does not raise: see `AgentResult.value`.

    Cancelling the caller cancels the run and everything in it.
    """
    node = NodeId(agent.name.replace("-", "_"))
    run = Run(
        Graph(agent.name, (Node(node, agent.work(question), kind="agent"),)),
        options,
        run=run_id(agent.name, {"question": question}),
        clock=clock,
        store=store,
        listeners=listeners,
    )
    result = await run.wait()
    outcome = result.outcomes[node]
    return AgentResult(outcome.value if outcome.ok else None, result)


def merge_plans(answer: Answer) -> Plan:
    """The steps of all rounds that did not fail and that the last plan's results need.

    A step that says the same as one of an earlier round is that one. Results of steps that failed
    are dropped. With nothing named, or nothing left of what was named, all steps that did not fail
    stay. Steps that a condition left out stay as well.
    """
    failed = _failed(answer)
    done: dict[int, PlanStep] = {}
    said: dict[str, int] = {}
    names: dict[int, int] = {}
    for plan in answer.plans:
        before = dict(said)
        for written in plan.steps:
            if written.number in failed:
                continue
            step = renumber_step(written, names)
            key = write_step(replace(step, number=0))
            if key in before:
                names[step.number] = before[key]
            else:
                done[step.number] = step
                said.setdefault(key, step.number)
    results = answer.plans[-1].results if answer.plans else ()
    kept = tuple(ref for ref in (renumber_ref(r, names) for r in results) if ref.source in done)
    needed = _needed(kept, done) if kept else done.keys()
    return Plan(tuple(done[number] for number in sorted(needed)), kept)


def _failed(answer: Answer) -> set[int]:
    """The steps of which a call failed; the last call decides where a number was used again."""
    used = Counter(step.number for plan in answer.plans for step in plan.steps)
    found: set[int] = set()
    for call in answer.calls:
        if call.outcome.failure is not None and not call.outcome.ok:
            found.add(call.number)
        elif used[call.number] > 1:
            found.discard(call.number)
    return found


def _needed(results: Iterable[Ref], done: Mapping[int, PlanStep]) -> set[int]:
    found: set[int] = set()
    doubtful = [ref.source for ref in results if isinstance(ref.source, int)]
    while doubtful:
        number = doubtful.pop()
        if number not in found and number in done:
            found.add(number)
            doubtful += done[number].needs
    return found
