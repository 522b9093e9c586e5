"""The agent port: answers a question with tools and a model, as a node function of the engine.

Also merges the plans of an agent's rounds into one. The loops are in `weft.agents.loops`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol

from weft.agents.catalogue.options import CatalogueOptions
from weft.core.errors import AgentError
from weft.core.events import Listener, Outcome
from weft.core.ids import NodeId, run_id
from weft.core.ports import Clock, ResultStore, Sampling, further_sampling
from weft.core.questions import PendingQuestion
from weft.core.values import JsonSchema
from weft.engine import Graph, Node, NodeFn, Run, RunOptions, RunResult
from weft.planner.grammar.limits import Constrain, GrammarLimits
from weft.planner.plan import Plan, PlanStep, Ref, renumber_ref, renumber_step
from weft.planner.rehearsal.options import RehearsalOptions
from weft.planner.text.writer import write_step


@dataclass(frozen=True, slots=True)
class Observation:
    """One call that ended, or a step that ended without a call.

    `number` is that of its step, counted through all rounds; the calls of a map share it.
    `arguments` are those of the call; for a step without one those of the plan, with references as
    text (`"$3.price"`). `requested`: the model's own, where a person changed them before the call.
    """

    number: int
    tool: str
    arguments: Mapping[str, Any]
    outcome: Outcome
    requested: Mapping[str, Any] | None = None


AnswerStatus = Literal["answered", "asking"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of an agent.

    value    the answer: text, or data of the schema in `AgentOptions.schema`
    calls    all calls, in the order of the steps
    rounds   the number of plans, or of requests for calls
    plans    the executed plans, for agents that plan
    thought  the model's reason for the answer
    partial  why the answer is partial: the model gave none, so it lists results of calls
    run      the run, where it was left at questions that nobody answered
    questions  those questions; the run goes on with `AskSettings(resume=run, answers=...)`
    """

    value: Any
    calls: tuple[Observation, ...] = ()
    rounds: int = 1
    plans: tuple[Plan, ...] = ()
    thought: str = ""
    partial: str = ""
    run: str = ""
    questions: tuple[PendingQuestion, ...] = ()

    @property
    def status(self) -> AnswerStatus:
        """Whether there is an answer, or the run waits for a person."""
        return "asking" if self.questions else "answered"


_GRAMMAR: Final = GrammarLimits()


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """Options of an agent.

    rounds        the most plans, or requests for several calls at once; an agent that makes one
                  call at a time is bounded by `calls` alone
    calls         the most tool calls in all
    schema        the JSON Schema of the answer, whose value is then typed; None: text
    constrain     how strictly a planning model is constrained to the language of plans
    grammar       the bounds of values in a grammar
    temperature   of all its model calls; 0 is greedy
    max_tokens    the longest answer of one model call
    instructions  further instructions, added to the system prompt
    approve       True: each call needs a person's approval; False: calls of `once` tools need none,
                  unless the tool says so; None: those of `once` tools
    seed, top_p to reasoning_effort  sampling parameters of all its model calls: see `Sampling`
    extra_body    further fields of each request, for servers
    thinking_tokens  of the thought before each answer, on top of `max_tokens`: see `Sampling`
    catalogue     which of its tools it offers to its model; None: all of them
    rehearsal     the facts with which its plans are rehearsed before their first call; None: they
                  are not

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
    approve: bool | None = None
    seed: int | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: Mapping[str, float] | None = None
    reasoning_effort: str | None = None
    extra_body: Mapping[str, Any] | None = None
    thinking_tokens: int | None = None
    catalogue: CatalogueOptions | None = None
    rehearsal: RehearsalOptions | None = None

    def __post_init__(self) -> None:
        for name, least in (("rounds", 1), ("calls", 0), ("temperature", 0), ("max_tokens", 1)):
            value = getattr(self, name)
            if not value >= least:
                raise ValueError(f"an agent's {name} must be {least} or more, got {value}")


def sampling_of(options: AgentOptions) -> Sampling:
    """The sampling parameters of an agent's model calls."""
    return replace(
        further_sampling(options),
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        seed=options.seed,
    )


class Agent(Protocol):
    """A way to answer questions. One agent may work on many questions at once."""

    @property
    def name(self) -> str:
        """The name in `make_agent`."""

    def work(self, question: str) -> NodeFn:
        """A node function whose value is an `Answer`.

        It appends its model and tool calls as nodes, so the run's budgets, cancellation and events
        apply. The node raises `AgentError` when it ends without an answer.
        """


@dataclass(frozen=True, slots=True)
class AgentResult:
    """The result of an agent's run; `answer` is None when it has none."""

    answer: Answer | None
    result: RunResult

    def value(self) -> Any:
        """The answer's value. Raises: `AgentError` with the reason why there is none."""
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

    Equal steps of different rounds are merged. Results of failed steps are dropped. Without any
    remaining result, all steps that did not fail stay. Steps with a false condition stay too.
    """
    failed = _failed(answer)
    done: dict[int, PlanStep] = {}
    numbers: dict[str, int] = {}
    names: dict[int, int] = {}
    for plan in answer.plans:
        before = dict(numbers)
        for written in plan.steps:
            if written.number in failed:
                continue
            step = renumber_step(written, names)
            key = write_step(replace(step, number=0))
            if key in before:
                names[step.number] = before[key]
            else:
                done[step.number] = step
                numbers.setdefault(key, step.number)
    results = answer.plans[-1].results if answer.plans else ()
    kept = tuple(ref for ref in (renumber_ref(r, names) for r in results) if ref.source in done)
    needed = _needed(kept, done) if kept else done.keys()
    return Plan(tuple(done[number] for number in sorted(needed)), kept)


def _failed(answer: Answer) -> set[int]:
    """The steps with a failed call; the last call decides where a number was used again."""
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
