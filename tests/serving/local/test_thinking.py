"""The bound on a thought in the local engine, on a model with random weights."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from tests.serving.local.playback import EXACT
from weft.core.errors import CapabilityError
from weft.core.ports import ModelRequest, Placed, Sampling, complete
from weft.serving.local import LocalModel


@pytest.mark.parametrize(("bound", "requests"), [(0, 1), (6, 2)])
def test_a_thought_that_the_prompt_has_opened(tiny_path: Path, bound: int, requests: int) -> None:
    async def main() -> None:
        async with aclosing(LocalModel(tiny_path, EXACT)) as model:
            assert (await model.capabilities()).thinking
            prompt = await model.encode("so <think>\n")
            sampling = Sampling(8, 0.0, thinking_tokens=bound)
            request = ModelRequest(
                prompt_token_ids=prompt, sampling=sampling, extra={"ignore_eos": True}
            )
            answer = await complete(model, request)
            plain = Sampling(bound or 1, 0.0)
            alone = ModelRequest(
                prompt_token_ids=prompt, sampling=plain, extra={"ignore_eos": True}
            )
            thought = (await complete(model, alone)).token_ids[:bound]
            closing = await model.encode("\n</think>\n\n", special=True)
            written = (*thought, *closing)
            rest = ModelRequest(
                prompt_token_ids=prompt + written,
                sampling=Sampling(8, 0.0),
                extra={"ignore_eos": True},
            )
            assert answer.token_ids == (*written, *(await complete(model, rest)).token_ids)
            usage = answer.usage
            assert (usage.reasoning_tokens, usage.completion_tokens) == (bound, bound + 8)
            sent = len(prompt) + (0 if bound else len(closing))
            assert (usage.prompt_tokens, usage.requests) == (sent, requests)

    asyncio.run(main())


def test_placed_prompts_have_no_bounded_thought(tiny_path: Path) -> None:
    async def main() -> None:
        async with aclosing(LocalModel(tiny_path, EXACT)) as model:
            request = ModelRequest(
                prompt_token_ids=(5, 6),
                placement=(Placed(2, 0),),
                sampling=Sampling(thinking_tokens=1),
            )
            with pytest.raises(CapabilityError, match="exclude one another"):
                await complete(model, request)

    asyncio.run(main())
