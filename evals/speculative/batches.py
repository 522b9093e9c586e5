"""Eight prompts at once on the local engine: what drafts are worth when passes are shared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evals.engine.rows import Row
from evals.speculative.cases.prompt import Prompt
from evals.speculative.figures import PLAIN
from evals.speculative.served import Served
from evals.speculative.systems import System
from evals.speculative.taken import Taken
from weft.core.values import AUTOREGRESSIVE

_WORDS: Final = 1
"""Tokens of an answer that is only asked for so that the prompt is read."""


async def batch_rows(
    case: str, prompts: Sequence[Prompt], served: Served, wanted: Sequence[System], tokens: int
) -> list[Row]:
    """Plainly and drafted in turn and back again: the ratio of the times of the whole batch."""
    specs = {PLAIN: AUTOREGRESSIVE, **{system.name: system.spec for system in wanted}}
    await served.together(prompts, AUTOREGRESSIVE, _WORDS)
    seconds = dict.fromkeys(specs, 0.0)
    answers: dict[str, Sequence[Taken]] = {}
    for name in (*specs, *reversed(specs)):
        answers[name], took_s = await served.together(prompts, specs[name], tokens)
        seconds[name] += took_s
    found: list[Row] = []
    for name in specs:
        same = [
            one.tokens == plain.tokens
            for one, plain in zip(answers[name], answers[PLAIN], strict=True)
        ]
        if name != PLAIN:
            ratio = seconds[PLAIN] / seconds[name]
            share = sum(same) / len(same)
            found.append(Row(case, name, f"batch{len(prompts)}_wall_ratio", ratio, "x"))
            found.append(Row(case, name, f"batch{len(prompts)}_identical_outputs", share, "share"))
    return found
