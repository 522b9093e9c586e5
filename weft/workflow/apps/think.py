"""`think`: a question for a reasoning strategy, as a workflow of one node.

The strategies are in `weft.reasoning.strategies`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from weft.core.errors import BuildError
from weft.core.keywords import refuses_unknown_keywords
from weft.core.ports import ModelClient
from weft.core.values import JsonSchema
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Document, Question
from weft.reasoning.strategies import STRATEGIES
from weft.reasoning.thought import Thought
from weft.workflow.apps.question import CHAT, Declared, QuestionFlow, error_of_answer, outcome_of
from weft.workflow.flow import Flow
from weft.workflow.runtime.blocking import run_blocking
from weft.workflow.runtime.models.factory import DEFAULT_MODEL, Models
from weft.workflow.runtime.models.strategies import check_thinking, check_typed
from weft.workflow.runtime.models.think import no_thought, refuse_thinker
from weft.workflow.runtime.options import AskSettings
from weft.workflow.runtime.results.result import ANSWER
from weft.workflow.runtime.run import FlowRun

DEFAULT_STRATEGY = "sample"


@refuses_unknown_keywords
async def think(
    question: str | Question,
    *,
    strategy: str = DEFAULT_STRATEGY,
    model: ModelClient | str | Mapping[str, Any] = DEFAULT_MODEL,
    options: ThinkOptions | None = None,
    system: str = "",
    documents: Iterable[Document] = (),
    schema: JsonSchema | None = None,
    settings: AskSettings | None = None,
) -> Thought:
    """Let `model` answer `question` by `strategy`: threads, samples, votes.

        thought = await weft.think("How many primes are below 100?", model="vllm:qwen3-8b",
                                   strategy="sample", options=weft.ThinkOptions(width=16))
        thought.answer, thought.counts, thought.why

    Args:
        question: a text; or a `Question` with its own `system`, `documents` and `schema`
        strategy: one of `weft.reasoning.strategies.STRATEGIES`
        model: a client, `local:NAME`, `vllm:NAME`, or a mapping as under `models` of a workflow
        options: width, budget, ... and the strategy's own settings: see `ThinkOptions`
        system: the system prompt
        documents: texts that the question is about
        schema: a JSON Schema that the answer fits, or the thought fails; `answer` is JSON then
        settings: listeners, concurrency, deadline and budget of the run, and where it is recorded

    Raises: `BuildError` for what is wrong with the arguments, `ReasoningError` when there is no
    answer, `StoreError` when it cannot be recorded.
    """
    if isinstance(question, str):
        question = Question(question, system, tuple(documents), schema)
    question_flow = think_flow(question, strategy, options or ThinkOptions(), model)
    async with Models() as models:
        run = question_flow.start(models, settings)
        await run.wait()
        return thought_of_run(run, strategy)


def think_flow(
    question: Question, strategy: str, options: ThinkOptions, model: Declared
) -> QuestionFlow:
    """The question as a workflow with one model node that thinks.

    Raises: `BuildError` for an empty question, an unknown strategy, settings that it does not have,
    a schema that it cannot satisfy, or a model that is invalid or itself a thinking model.
    """
    if not question.text.strip():
        raise BuildError("the question is empty", hint='weft think "why ...?"')
    if not isinstance(model, (str, Mapping)):
        refuse_thinker(model)
    check_thinking(strategy, options)
    check_typed(strategy, question.schema)
    files = _files(strategy, options)
    folder = Path(os.path.commonpath((Path.cwd().resolve(), *files.values())))
    flow = Flow("think", models={CHAT: model}, folder=folder)
    inputs: dict[str, Any] = {"question": question.text}
    given: dict[str, Any] = {}
    given_options = _given(options)
    given_options["settings"] = {
        **options.settings,
        **{name: file.relative_to(folder).as_posix() for name, file in files.items()},
    }
    thinking: dict[str, Any] = {"strategy": strategy, **given_options}
    if question.documents:
        flow.input("documents", list)
        inputs["documents"] = [
            {"name": each.name, "text": each.text} for each in question.documents
        ]
        thinking["documents"] = "{{ documents }}"
    if question.system:
        flow.input("system", str)
        inputs["system"] = question.system
        given["system"] = "{{ system }}"
    asked = flow.input("question", str)
    answer = flow.model(
        CHAT, asked, schema=question.schema, think=thinking, name=str(ANSWER), **given
    )
    flow.output(answer=answer)
    return QuestionFlow(flow, inputs)


def thought_of_run(run: FlowRun, strategy: str) -> Thought:
    """The thought of a finished run. Raises: `ReasoningError` when there is no answer."""
    thought = run.findings.get(ANSWER)
    outcome = outcome_of(run)
    if outcome.ok and isinstance(thought, Thought):
        return thought
    raise no_thought(strategy, outcome) from error_of_answer(run)


def think_sync(question: str | Question, **given: Any) -> Thought:
    """`think` for scripts and notebooks; the same arguments.

    Inside a running event loop it runs on a thread of its own, and blocks that loop meanwhile.
    Raises: as `think`.
    """
    return run_blocking(lambda: think(question, **given))


def _given(options: ThinkOptions) -> dict[str, Any]:
    """The options that are set, without the settings of the strategy."""
    named = (field.name for field in fields(options) if field.name != "settings")
    return {name: value for name in named if (value := getattr(options, name)) is not None}


def _files(strategy: str, options: ThinkOptions) -> dict[str, Path]:
    """The files that settings name, by setting."""
    return {
        name: Path(value).resolve()
        for name, value in options.settings.items()
        if name in STRATEGIES[strategy].files and isinstance(value, (str, Path))
    }
