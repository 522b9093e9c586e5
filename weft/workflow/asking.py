"""A question to an agent that plans and calls tools: `ask`, and the run behind it.

Puts tools, a model and an agent loop together. Knows no loop itself: see `weft.agents.loops`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.agents.agent import Agent, AgentOptions, Answer
from weft.agents.loops import make_agent
from weft.agents.merged import merged
from weft.agents.reuse import ReusingTools
from weft.core.errors import AgentError, BuildError
from weft.core.ports import ModelClient, ToolRunner
from weft.workflow.models import DEFAULT_MODEL, Models
from weft.workflow.planned import flow_of
from weft.workflow.question_run import ANSWER, AskSettings, QuestionRun, run_here
from weft.workflow.tool_sources import Toolish, ToolSources


class AskRun(QuestionRun):
    """One question under way: see `QuestionRun`.

    Raises, when it is made: `BuildError` for an empty question.
    """

    def __init__(self, agent: Agent, question: str, settings: AskSettings) -> None:
        if not question.strip():
            raise BuildError("the question is empty", hint='weft ask "which is cheaper, ...?"')
        identity = {"question": question, "agent": agent.name}
        super().__init__("ask", agent.work(question), "agent", identity, settings)

    def answer_in(self, value: Answer) -> Any:
        return value.value

    @property
    def found(self) -> Answer:
        """The answer with its calls and plans. Raises: `AgentError` when there is none."""
        if not isinstance(self.outcome.value, Answer):
            raise AgentError(self.why_not, node=ANSWER)
        return self.outcome.value


@dataclass(frozen=True, slots=True)
class Asker:
    """An agent over given tools and a model, for any number of questions."""

    tools: ToolRunner
    model: ModelClient
    agent: str = "compiler"
    options: AgentOptions = field(default_factory=AgentOptions)

    def start(self, question: str, settings: AskSettings | None = None) -> AskRun:
        """Prepare a run. Raises: `BuildError` for an unknown agent or an empty question."""
        tools = ReusingTools(self.tools)
        loop = make_agent(self.agent, tools, self.model, self.options)
        return AskRun(loop, question, settings or AskSettings())


async def ask(
    question: str,
    *,
    tools: Iterable[Toolish] = (),
    model: ModelClient | str | Mapping[str, Any] = DEFAULT_MODEL,
    agent: str = "compiler",
    options: AgentOptions | None = None,
    settings: AskSettings | None = None,
) -> Answer:
    """Let `agent` answer `question` with `tools`: plan calls, run them in parallel, conclude.

        answer = await weft.ask("Which is cheaper?", tools=[price], model="vllm:qwen3-8b")
        answer.value, answer.calls, answer.plans

    Args:
        tools: `@weft.tool` functions, tool runners, or paths such as "./tools.py"
        model: a client, `local:NAME`, `vllm:NAME`, or a mapping as under `models` of a workflow
        agent: compiler, divide, react or parallel-react
        options: rounds, calls, the schema of the answer: see `AgentOptions`
        settings: listeners, concurrency, deadline and budget

    Raises: `BuildError` for what is wrong with the arguments, `AgentError` when there is no answer.
    """
    async with Models() as models, ToolSources(tools) as sources:
        client = models.of(model) if isinstance(model, (str, Mapping)) else model
        asker = Asker(sources.runner, client, agent, options or AgentOptions())
        run = asker.start(question, settings)
        await run.wait()
        return run.found


def saved(
    question: str,
    answer: Answer,
    sources: ToolSources,
    folder: Path,
    model: str | Mapping[str, Any],
) -> str:
    """The calls that led to `answer`, as a workflow file in `folder`: a plan that worked.

    `model` concludes in it, as it did here. Raises: `BuildError` when the agent made no plan, or
    when a file there cannot name a tool.
    """
    if not answer.plans:
        raise BuildError("this agent writes no plan to save", hint="use --agent compiler")
    plan = merged(answer)
    there = sources.declarations(folder, [step.tool for step in plan.steps])
    flow = flow_of(
        plan, there.tools, called=there.called, question=question, model=model, folder=folder
    )
    return flow.to_yaml()


def ask_sync(question: str, **given: Any) -> Answer:
    """`ask` for programs without an event loop; the same arguments.

    Raises: what `ask` raises, and `BuildError` inside an event loop.
    """
    return run_here(lambda: ask(question, **given), "ask")
