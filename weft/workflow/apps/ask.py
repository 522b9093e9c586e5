"""`ask`: a question for an agent that plans and calls tools, as a workflow of one node.

The agents' loops are in `weft.agents.loops`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from weft.agents.agent import AgentOptions, Answer, merge_plans
from weft.agents.catalogue.options import CatalogueOptions
from weft.agents.loops import check_options
from weft.agents.names import check_callable
from weft.agents.reuse import ReusingTools
from weft.core.errors import AgentError, BuildError
from weft.core.keywords import refuses_unknown_keywords
from weft.core.ports import ModelClient
from weft.planner.grammar.limits import BOUNDS, GrammarLimits
from weft.planner.rehearsal.options import RehearsalOptions
from weft.workflow.apps.question import (
    CHAT,
    Declared,
    QuestionFlow,
    error_of_answer,
    outcome_of,
    why_unanswered,
)
from weft.workflow.apps.tool_sources import ToolLike, ToolSection, ToolSources
from weft.workflow.document.spec.sampling import SamplingPart
from weft.workflow.document.unit import ONLY_PYTHON
from weft.workflow.flow import Flow
from weft.workflow.plans import flow_of
from weft.workflow.runtime.blocking import run_blocking
from weft.workflow.runtime.models.factory import DEFAULT_MODEL, DEFAULT_PLANNER, Models
from weft.workflow.runtime.options import AskSettings
from weft.workflow.runtime.results.result import ANSWER
from weft.workflow.runtime.run import FlowRun

_PLANNING: Final = ("compiler", "plan")


@refuses_unknown_keywords
async def ask(
    question: str,
    *,
    tools: Iterable[ToolLike] = (),
    model: ModelClient | str | Mapping[str, Any] | None = None,
    agent: str = "compiler",
    options: AgentOptions | None = None,
    settings: AskSettings | None = None,
    facts: Iterable[str] = (),
    goals: Iterable[str] = (),
) -> Answer:
    """Let `agent` answer `question` with `tools`: plan calls, run them in parallel, conclude.

        answer = await weft.ask("Which is cheaper?", tools=[price], model="vllm:qwen3-8b")
        answer.value, answer.calls, answer.plans

    Calls of tools with the effect `once` need a person's approval (see `AgentOptions.approve`). At
    a question that nobody answers the run is left: `answer.status` is then `asking`.

    Args:
        tools: `@weft.tool` functions, tool runners, or paths such as "./tools.py"
        model: a client, `local:NAME`, `vllm:NAME`, or a mapping as under `models` of a workflow; by
            default the embedded planner, or the embedded model where it has not learnt the task
        agent: compiler, divide, react, parallel-react, or plan, which makes no call
        options: rounds, calls, the schema of the answer, a catalogue: see `AgentOptions`
        settings: listeners, concurrency, deadline and budget, and where the run is recorded
        facts: all that holds before the first call, such as `at(kitchen)`: with facts or goals, a
            plan is rehearsed by what its tools need and make, see `AgentOptions.rehearsal`
        goals: what has to hold after the last call

    Raises: `BuildError` for invalid arguments, `AgentError` when there is no answer,
    `StoreError` when it cannot be recorded.
    """
    options = options or AgentOptions()
    options = _rehearsing(options, _list(facts), _list(goals))
    check_question(question, agent, options)
    sources = ToolSources(tools)
    chosen = default_model(agent, options) if model is None else model
    async with Models() as models, ask_flow(question, sources, agent, options, chosen) as flow:
        given = settings or AskSettings()
        run = flow.start(models, replace(given, questions=given.questions or "pause"))
        await run.wait()
        return answer_of_run(run)


def _rehearsing(options: AgentOptions, facts: Sequence[str], goals: Sequence[str]) -> AgentOptions:
    """`options` with a rehearsal, if there are facts or goals. Raises: `BuildError`."""
    if not facts and not goals:
        return options
    if options.rehearsal is not None:
        raise BuildError("facts or goals are given twice", hint="leave `options.rehearsal` out")
    return replace(options, rehearsal=RehearsalOptions(facts, goals))


def _list(given: Iterable[str]) -> Sequence[str]:
    """`given` as a sequence; one text stays, and is refused as no list."""
    return given if isinstance(given, str) else tuple(given)


def default_model(agent: str, options: AgentOptions) -> str:
    """The embedded planner for plans whose answer is a text; else the model it was made from."""
    plans = agent in _PLANNING and options.schema is None
    return DEFAULT_PLANNER if plans else DEFAULT_MODEL


def check_question(question: str, agent: str, options: AgentOptions) -> None:
    """Raises: `BuildError` for an empty question, an unknown agent, or an invalid schema."""
    if not question.strip():
        raise BuildError("the question is empty", hint='weft ask "which is cheaper, ...?"')
    check_options(agent, options)


@asynccontextmanager
async def ask_flow(
    question: str, sources: ToolSources, agent: str, options: AgentOptions, model: Declared
) -> AsyncIterator[QuestionFlow]:
    """The question as a workflow with one model node, an agent with the tools of `sources`.

    Its run begins and ends inside the context. Tools that no workflow could name are started and
    stopped here. Raises: `BuildError`, `ToolError`.
    """
    file = _catalogue_file(options)
    section = sources.section(file)
    if section is not None and not section.tools and file is not None:
        check_callable(agent, file)
    if section is not None:
        flow = _flow(section, agent, options, model)
        yield QuestionFlow(flow, _inputs(question, options), section.specs)
        return
    async with sources:
        tools = sources.runner
        named = {spec.name: f"{ONLY_PYTHON}{spec.name}" for spec in tools.specs()}
        folders = [Path.cwd().resolve(), *([] if file is None else [file.parent])]
        folder = Path(os.path.commonpath(folders))
        flow = _flow(ToolSection(folder, named), agent, options, model)
        reusing = ReusingTools(tools)
        yield QuestionFlow(flow, _inputs(question, options), tools.specs(), reusing)


def answer_of_run(run: FlowRun) -> Answer:
    """The answer of a finished run, with its calls and plans, or its open questions.

    Raises: `AgentError` when there is none.
    """
    if run.result is not None and run.result.questions:
        return Answer(None, run=run.id, questions=run.result.questions)
    answer = run.findings.get(ANSWER)
    if outcome_of(run).ok and isinstance(answer, Answer):
        return answer
    raise AgentError(why_unanswered(run), node=ANSWER) from error_of_answer(run)


def plan_as_yaml(
    question: str,
    answer: Answer,
    sources: ToolSources,
    folder: Path,
    model: str | Mapping[str, Any],
) -> str:
    """The calls that led to `answer`, as a workflow file in `folder`.

    `model` concludes in it, as it did here. Raises: `BuildError` when the agent made no plan, or
    when a file there cannot name a tool.
    """
    if not answer.plans:
        raise BuildError("this agent writes no plan to save", hint="use --agent compiler")
    plan = merge_plans(answer)
    declared = sources.declarations(folder, [step.tool for step in plan.steps])
    flow = flow_of(
        plan, declared.tools, called=declared.called, question=question, model=model, folder=folder
    )
    return flow.to_yaml()


def ask_sync(question: str, **given: Any) -> Answer:
    """`ask` for scripts and notebooks; the same arguments.

    Inside a running event loop it runs on a thread of its own, and blocks that loop meanwhile.
    Raises: as `ask`.
    """
    return run_blocking(lambda: ask(question, **given))


def _flow(section: ToolSection, agent: str, options: AgentOptions, model: Declared) -> Flow:
    flow = Flow("ask", models={CHAT: model}, tools=section.tools, folder=section.folder)
    asked = flow.input("question", str)
    given: dict[str, Any] = {}
    if options.instructions:
        flow.input("instructions", str)
        given["system"] = "{{ instructions }}"
    limits: dict[str, Any] = {
        "rounds": options.rounds,
        "calls": options.calls,
        "constrain": options.constrain,
    }
    if options.approve is not None:
        limits["approve"] = options.approve
    if options.catalogue is not None:
        limits["catalogue"] = _catalogue(options.catalogue, section.folder)
    if options.rehearsal is not None:
        limits["rehearsal"] = {
            "facts": list(options.rehearsal.facts),
            "goals": list(options.rehearsal.goals),
            "states": options.rehearsal.states,
        }
    if options.grammar != GrammarLimits():
        limits["grammar"] = {name: getattr(options.grammar, name) for name in BOUNDS}
    answer = flow.model(
        CHAT,
        asked,
        tools=list(section.tools),
        schema=options.schema,
        agent={"loop": agent, **limits},
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        name=str(ANSWER),
        **given,
        **_sampling(options),
    )
    flow.output(answer=answer)
    return flow


def _catalogue_file(options: AgentOptions) -> Path | None:
    """The file of the catalogue, with symbolic links resolved."""
    if options.catalogue is None or options.catalogue.file is None:
        return None
    return Path(options.catalogue.file).resolve()


def _catalogue(given: CatalogueOptions, folder: Path) -> dict[str, Any]:
    """The key `catalogue` of an agent in a workflow in `folder`."""
    made: dict[str, Any] = {name: getattr(given, name) for name in ("tokens", "chooser", "calls")}
    if given.file is not None:
        made["file"] = f"./{Path(given.file).resolve().relative_to(folder).as_posix()}"
    return made


def _sampling(options: AgentOptions) -> dict[str, Any]:
    """The sampling settings that are set."""
    names = ("seed", *SamplingPart.model_fields)
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def _inputs(question: str, options: AgentOptions) -> dict[str, Any]:
    given = {"instructions": options.instructions} if options.instructions else {}
    return {"question": question, **given}
