"""Answers of the local engine, one at a time or several at once, each with its own decoder."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final

from evals.speculative.cases.prompt import Prompt
from evals.speculative.taken import Taken
from weft.core.ports import ModelRequest, Prefilled, Sampling
from weft.core.values import Completion, DecodeSpec
from weft.serving.local import LocalModel, LocalOptions

BATCH: Final = 8


class Served:
    """The local engine over the weights of a folder, kept as a user's are. Close it."""

    def __init__(self, path: Path, device: str = "cpu") -> None:
        options = LocalOptions(device=device, max_batch=BATCH)
        self._model = LocalModel(path, options)

    async def answer(self, prompt: Prompt, decode: DecodeSpec, most_tokens: int) -> Taken:
        """A greedy answer. Its seconds begin when the prompt has been read.

        The passes are those of the answer if the prompt, but for its end, was read before.
        """
        request = ModelRequest(
            prompt.messages,
            sampling=Sampling(max_tokens=most_tokens, temperature=0.0),
            schema=prompt.schema,
            grammar=prompt.grammar,
            decode=decode,
        )
        begun = time.perf_counter()
        async with aclosing(self._model.generate(request)) as events:
            async for event in events:
                if isinstance(event, Prefilled):
                    begun = time.perf_counter()
                elif isinstance(event, Completion):
                    return _taken(event, time.perf_counter() - begun)
        raise AssertionError("a model's answer ends with its completion")

    async def together(
        self, prompts: Sequence[Prompt], decode: DecodeSpec, most_tokens: int
    ) -> tuple[Sequence[Taken], float]:
        """The answers to all of `prompts` at once, and how long they took, prompts included."""
        begun = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            answers = [
                group.create_task(self.answer(prompt, decode, most_tokens)) for prompt in prompts
            ]
        return [answer.result() for answer in answers], time.perf_counter() - begun

    async def close(self) -> None:
        """Let go of the weights."""
        await self._model.aclose()


def _taken(completion: Completion, seconds: float) -> Taken:
    told = completion.speculation
    if told is None:
        return Taken(completion.token_ids, completion.usage.forwards, seconds)
    return Taken(
        completion.token_ids,
        told.forwards,
        seconds,
        told.drafted,
        told.accepted,
        told.tested,
        told.held,
        proposal_s=told.proposal_s,
        fallback=told.fallback,
    )
