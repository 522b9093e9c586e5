"""A local model's thought comes as reasoning, and its template gets the variables of a request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat_templates import FAMILIES
from tests.serving.text.splitting import cuts
from weft.core.ports import ModelEvent, Prefilled, ReasoningDelta, TextDelta
from weft.core.values import Completion
from weft.errors import ModelRequestError
from weft.serve import LocalModel, LocalOptions, Message, ModelRequest
from weft.serving.text import ReasoningStyle, Splitter, separated

HI = (Message("user", "hi"),)
OFF = {"enable_thinking": False}


async def events(pieces: list[str], closed: list[bool]) -> AsyncGenerator[ModelEvent, None]:
    """A stream in which each character is a token."""
    try:
        yield Prefilled((7,))
        at = 0
        for piece in pieces:
            ids = tuple(range(at, at + len(piece)))
            yield TextDelta(piece, ids, tuple(-float(n) for n in ids), tuple((0.0,) for _ in ids))
            at += len(piece)
        text = "".join(pieces)
        yield Completion(text, token_ids=tuple(range(len(text))), model="m")
    finally:
        closed.append(True)


def split(pieces: list[str], style: ReasoningStyle) -> list[ModelEvent]:
    async def main() -> list[ModelEvent]:
        async with aclosing(separated(events(pieces, []), Splitter(style))) as stream:
            return [event async for event in stream]

    return asyncio.run(main())


@given(st.data(), st.sampled_from(["think", "think-open"]))
def test_every_token_comes_once_and_in_order(data: st.DataObject, style: ReasoningStyle) -> None:
    whole = data.draw(
        st.lists(st.sampled_from(["<think>", "</think>", "a", "\n", "<", " b"])).map("".join)
    )
    first, *found, end = split(data.draw(cuts(whole)), style)
    assert first == Prefilled((7,))
    assert isinstance(end, Completion)
    assert end.token_ids == tuple(range(len(whole)))
    texts = [event for event in found if isinstance(event, TextDelta)]
    thoughts = [event for event in found if isinstance(event, ReasoningDelta)]
    assert end.text == "".join(event.text for event in texts)
    assert end.reasoning == "".join(event.text for event in thoughts)
    carried = [event for event in found if isinstance(event, TextDelta | ReasoningDelta)]
    assert tuple(i for event in carried for i in event.token_ids) == end.token_ids
    for event in texts:
        assert len(event.logprobs) == len(event.token_ids) == len(event.top_logprobs)


def test_leaving_the_stream_ends_the_answer() -> None:
    closed: list[bool] = []

    async def main() -> None:
        async with aclosing(separated(events(["a", "b"], closed), Splitter("think"))) as stream:
            await anext(stream)

    asyncio.run(main())
    assert closed == [True]


def model(folder: Path, family: str, **options: Any) -> LocalModel:
    """A model without weights, which can tokenize."""
    path = FAMILIES[family].write(folder / family)
    (path / "config.json").write_text(json.dumps({"model_type": "llama"}), "utf-8")
    return LocalModel(path, LocalOptions(**options))


def prompt(client: LocalModel, **given: Any) -> str:
    async def main() -> str:
        async with aclosing(client):
            ids = await client.encode_chat(HI, chat_template_kwargs=given or None)
            return await client.decode(ids)

    return asyncio.run(main())


def test_the_variables_of_settings_and_request_reach_the_template(tmp_path: Path) -> None:
    empty = "<think>\n\n</think>\n\n"
    assert not prompt(model(tmp_path, "qwen3")).endswith(empty)
    assert prompt(model(tmp_path, "qwen3"), **OFF).endswith(empty)
    settings = model(tmp_path, "qwen3", chat_template_kwargs=OFF)
    assert prompt(settings).endswith(empty)
    settings = model(tmp_path, "qwen3", chat_template_kwargs=OFF)
    assert not prompt(settings, enable_thinking=True).endswith(empty)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ModelRequestError, match="mapping of names"):
        LocalOptions(chat_template_kwargs=[1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reasoning is one of auto, none, think"):
        LocalOptions(reasoning="loud")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("family", "options", "request_", "style"),
    [
        ("qwen3", {}, ModelRequest(HI), "think"),
        ("deepseek-r1-distill", {}, ModelRequest(HI), "think-open"),
        ("mistral", {}, ModelRequest(HI), "mistral"),
        ("gpt-oss", {}, ModelRequest(HI), "harmony"),
        ("llama3", {}, ModelRequest(HI), None),
        ("llama3", {"reasoning": "think"}, ModelRequest(HI), "think"),
        ("qwen3", {"reasoning": "none"}, ModelRequest(HI), None),
        ("qwen3", {}, ModelRequest(HI, schema={"type": "object"}), None),
        ("qwen3", {}, ModelRequest(prompt_token_ids=(1,)), None),
        (
            "deepseek-r1-distill",
            {},
            ModelRequest((*HI, Message("assistant", "So"))),
            "think",  # the answer that goes on stands behind the thought
        ),
    ],
)
def test_the_form_of_each_request(
    tmp_path: Path,
    family: str,
    options: dict[str, Any],
    request_: ModelRequest,
    style: ReasoningStyle | None,
) -> None:
    client = model(tmp_path, family, **options)
    assert asyncio.run(client._style(request_)) == style
