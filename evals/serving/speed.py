"""How fast a server is with nothing to save, so that a load can be set in proportion to it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

from evals.serving.known import computed_tokens
from evals.serving.programs import Call, Ids, Program
from evals.serving.prose import Prose
from evals.serving.replay import request
from weft.core.ports import ModelClient, complete

_PROMPT = 2_048
_SHARED = 640
_TOGETHER = 24
_ANSWER = 64


@dataclass(frozen=True, slots=True)
class Speed:
    """New prompt tokens by themselves, and answers of a usual number of requests, a second."""

    prompt_tokens_per_s: float
    answer_tokens_per_s: float

    def seconds(self, programs: Sequence[Program]) -> float:
        """The least time for `programs` at this speed: no prompt computed twice, no waiting."""
        prompts = sum(map(computed_tokens, programs))
        answers = sum(call.max_tokens for program in programs for call in program.calls)
        return prompts / self.prompt_tokens_per_s + answers / self.answer_tokens_per_s


async def measure(model: ModelClient, prose: Prose) -> Speed:
    """Prompts one by one, then 24 answers at once after prompts of a usual length."""
    source = random.Random("speed")
    prompts = [prose.write(source, _PROMPT) for _ in range(3)]
    started = 0.0
    for place, prompt in enumerate(prompts):
        if place == 1:  # the first one warms up
            started = time.perf_counter()
        await _ask(model, prompt, 1)
    prompt_s = (time.perf_counter() - started) / (len(prompts) - 1)
    shared = prose.write(source, _SHARED)
    await _ask(model, shared, 1)
    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for place in range(_TOGETHER):
            group.create_task(_ask(model, (*shared, place + 100), _ANSWER))
    answers_s = time.perf_counter() - started
    return Speed(_PROMPT / prompt_s, _TOGETHER * _ANSWER / answers_s)


async def _ask(model: ModelClient, prompt: Ids, tokens: int) -> None:
    await complete(model, request(Call("probe", (prompt,), tokens), prompt))
