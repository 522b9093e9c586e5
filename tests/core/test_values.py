from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import ModelUnavailable
from weft.core.ports import ModelRequest, complete
from weft.core.values import Completion, Message, Usage
from weft.testing import FakeModel

COUNT = st.integers(0, 1000)
USAGE = st.builds(Usage, COUNT, COUNT, COUNT, COUNT, COUNT, COUNT.map(float))


@given(USAGE, USAGE, USAGE)
def test_usage_adds_up_in_any_order(a: Usage, b: Usage, c: Usage) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + Usage() == a
    assert (a + b).tokens == a.tokens + b.tokens


def test_a_request_has_exactly_one_prompt() -> None:
    with pytest.raises(ValueError, match="either messages or prompt_token_ids"):
        ModelRequest()
    with pytest.raises(ValueError, match="either messages or prompt_token_ids"):
        ModelRequest((Message("user", "hi"),), prompt_token_ids=(1,))


def test_complete_notices_a_stream_without_an_end() -> None:
    class Endless(FakeModel):
        async def generate(self, request):
            return
            yield

    async def main() -> Completion:
        return await complete(Endless(["x"], model="odd"), ModelRequest((Message("user", "hi"),)))

    with pytest.raises(ModelUnavailable, match="odd ended without a completion"):
        asyncio.run(main())
