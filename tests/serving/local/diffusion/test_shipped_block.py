"""The block-diffusion model that comes with weft, at the work it was trained for."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

from weft.core.ports import ModelRequest, Sampling, complete
from weft.core.values import AUTOREGRESSIVE, Completion, DecodeSpec, Lossy, Message
from weft.decoding.shipped_weights import shipped_weights
from weft.serving.local import LocalModel, LocalOptions
from weft.training.diffusion.block.documents import GeneratedDocument, random_document

WEIGHTS = shipped_weights("diffusion")
SURE = Lossy("threshold", (("threshold", 0.9),))
NEVER_LEARNT = 20_000_000


async def told(made: GeneratedDocument, decode: DecodeSpec) -> Completion:
    model = LocalModel(WEIGHTS / "smollm2-block", LocalOptions(dtype="float32", decode=decode))
    request = ModelRequest(
        messages=(Message("user", made.request),),
        schema=made.schema,
        sampling=Sampling(max_tokens=300, temperature=0.0, seed=0),
    )
    try:
        return await complete(model, request)
    finally:
        await model.aclose()


@pytest.mark.model
@pytest.mark.usefixtures("smollm2")
def test_a_form_is_filled_with_several_values_a_pass() -> None:
    made = random_document(np.random.default_rng(NEVER_LEARNT))
    alone, together = asyncio.run(told(made, AUTOREGRESSIVE)), asyncio.run(told(made, SURE))

    assert json.loads(alone.text) == json.loads(together.text) == dict(made.fields)
    assert 0 < together.usage.forwards < alone.usage.forwards
    assert 3 * together.usage.forwards < together.usage.completion_tokens
