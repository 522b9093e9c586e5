"""A question to a model that thinks by a strategy: `think`.

Puts a model and a strategy together. Knows no strategy itself: see `weft.reasoning.strategies`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weft.core.ports import ModelClient
from weft.core.values import JsonSchema
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Document, Question
from weft.reasoning.strategies import make_strategy
from weft.reasoning.thought import Thought
from weft.workflow.models import DEFAULT_MODEL, Models
from weft.workflow.question_run import AskSettings, run_here
from weft.workflow.thought_model import refuse_thinker
from weft.workflow.thought_run import ThoughtRun

DEFAULT_STRATEGY = "sample"


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
        question: a text; or a `Question`, which holds `system`, `documents` and `schema` itself
        strategy: one of `weft.reasoning.strategies.STRATEGIES`
        model: a client, `local:NAME`, `vllm:NAME`, or a mapping as under `models` of a workflow
        options: width, budget, ... and the strategy's own settings: see `ThinkOptions`
        system: what the model is told about its job
        documents: texts that the question is about
        schema: a JSON Schema that the answer fits, or the thought fails; `answer` is JSON then
        settings: listeners, concurrency, deadline and budget of the run

    Raises: `BuildError` for what is wrong with the arguments, `ReasoningError` when there is no
    answer.
    """
    if isinstance(question, str):
        question = Question(question, system, tuple(documents), schema)
    async with Models() as models:
        client = models.of(model) if isinstance(model, (str, Mapping)) else model
        refuse_thinker(client)
        run = ThoughtRun(
            make_strategy(strategy, client, options or ThinkOptions()), question, settings
        )
        await run.wait()
        return run.thought


def think_sync(question: str | Question, **given: Any) -> Thought:
    """`think` for programs without an event loop; the same arguments.

    Raises: what `think` raises, and `BuildError` inside an event loop.
    """
    return run_here(lambda: think(question, **given), "think")
