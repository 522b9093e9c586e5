"""What a thought comes to as the value of a node: its answer. Knows no strategy."""

from __future__ import annotations

from typing import Any

from weft.core.errors import Failure, ReasoningError
from weft.core.values import JsonSchema
from weft.engine import NodeContext, Partial
from weft.engine.followed import followed
from weft.reasoning.thought import Thought
from weft.workflow.compile.services import services_of
from weft.workflow.typed_answer import parsed


def answered(result: Any, context: NodeContext, schema: JsonSchema | None) -> Any:
    """The answer of the `Thought` that a work comes to, typed where there is a schema.

    Its log tells people what the thought cost and why it ended; the findings hold all of it.
    """

    def value(thought: Thought) -> Any:
        counts = thought.counts
        lost = f"; {thought.lost}" if thought.lost else ""
        context.log(
            f"{counts.total_tokens:,} tokens in {counts.threads} threads, "
            f"{counts.critical_path_tokens:,} one after another; {thought.why}{lost}"
        )
        services_of(context).findings[context.node] = thought
        answer = parsed(thought.answer, schema)
        return Partial(answer, cut_off(thought)) if thought.cut else answer

    return followed(result, value)


def cut_off(thought: Thought) -> Failure:
    """What is missing of an answer that is cut off."""
    why = f": {thought.why}" if thought.why else ""
    hint = "raise max_tokens, or the budget"
    return ReasoningError(f"the answer is cut off{why}", hint=hint).failure()
