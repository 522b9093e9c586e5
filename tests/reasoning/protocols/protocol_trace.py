"""Runs a protocol over a scripted model of token ids, and tells what happened as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests import golden_files
from tests.reasoning.scripted_strategy import Told, told
from weft.core.ports import ModelRequest
from weft.reasoning.question import Question
from weft.reasoning.thought import Thought, ThreadFork, ThreadRecord
from weft.testing import TokenModel, TokenReply

GOLDEN = Path(__file__).parents[2] / "golden" / "reasoning"


def model_of(
    answers: Mapping[str, str | TokenReply] | Callable[[str], str | TokenReply],
    tags: tuple[str, ...] = (),
    **fields: Any,
) -> TokenModel:
    """A model that answers by the end of what it reads; the longest end that fits counts."""

    def script(ids: tuple[int, ...], _: ModelRequest) -> str | TokenReply:
        text = model.spell(ids)
        if callable(answers):
            return answers(text)
        ends = [end for end in answers if text.endswith(end)]
        assert ends, f"nobody said what comes after {text[-80:]!r}"
        return answers[max(ends, key=len)]

    model = TokenModel(script, tags=tags, **fields)
    return model


def thought_of(
    strategy: str, model: TokenModel, question: Question | str = "What is it?", **fields: Any
) -> Thought:
    return told(strategy, model, question, **fields).thought


def trace(model: TokenModel, thought: Thought) -> str:
    """What was sent, what came of it, and the tree: `=` is the model's, `+` the runtime's."""
    lines = []
    for number, request in enumerate(model.requests, 1):
        stops = [model.spell([stop]) for stop in request.sampling.stop_token_ids]
        stops += request.sampling.stop
        lines.append(f"#### request {number} (stops: {' '.join(stops) or 'none'})")
        lines.append(model.spell(request.prompt_token_ids))
        lines += [
            f"  [{at}] {placed.tokens} tokens from {placed.position}, sees {list(placed.sees)}"
            for at, placed in enumerate(request.placement)
        ]
    lines += ["#### tree", *_shown(thought.tree, "")] if thought.tree is not None else []
    lines.append(f"#### answer\n{thought.answer}")
    lines.append(f"#### {thought.fidelity}{': ' if thought.lost else ''}{thought.lost}")
    lines += [f"why: {thought.why}"] if thought.why else []
    lines.append(str(thought.counts))
    return "\n".join(lines) + "\n"


def _shown(thread: ThreadRecord, indent: str) -> list[str]:
    said = f"{indent}{thread.role} {thread.key} {thread.state.value}"
    lines = [f"{said} ({thread.reason})" if thread.reason else said]
    for part in thread.segments:
        if isinstance(part, ThreadFork):
            for child in part.children:
                lines += _shown(child, indent + "    ")
        else:
            lines.append(
                f"{indent}  {'+' if part.forced else '='} {part.text!r} {part.role}".rstrip()
            )
    return lines


def assert_golden(name: str, model: TokenModel, thought: Thought) -> None:
    """The trace is that of the golden file."""
    golden_files.assert_golden(GOLDEN / f"{name}.txt", trace(model, thought))


__all__ = ["Told", "assert_golden", "model_of", "thought_of", "trace"]
