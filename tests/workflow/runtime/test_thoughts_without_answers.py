"""Nodes and strategies whose model only thought: what is sent again, and what the hint says."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.core.ports import Capabilities
from weft.errors import OutputTruncated, ReasoningError
from weft.testing import FakeModel, Reply

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
LONG = " hm" * 300


def ran(model: FakeModel, **options: Any) -> Any:
    flow = weft.Flow("f", models={"m": model})
    flow.output(a=flow.model("m", "How many?", name="a", **options))
    return flow.run_sync()


@pytest.mark.parametrize("schema", [None, SCHEMA])
@pytest.mark.parametrize("reply", [Reply("x", reasoning=LONG), Reply(f"<think>{LONG}")])
def test_a_node_whose_thought_took_all_tokens(reply: Reply, schema: Any) -> None:
    result = ran(FakeModel(lambda _: reply), max_tokens=50, schema=schema)
    failure = result.outcomes["a"].failure
    assert failure.error == OutputTruncated.__name__
    assert "its thought took all of its tokens" in failure.message
    for words in ("raise max_tokens", "thinking_tokens: 500", "--thinking off"):
        assert words in failure.hint


@pytest.mark.parametrize("schema", [None, SCHEMA])
@pytest.mark.parametrize("text", ["<think>hm", "<think>hm</think>", "[THINK]hm[/THINK]\n"])
def test_a_node_whose_model_only_thought(text: str, schema: Any) -> None:
    result = ran(FakeModel(lambda _: text), max_tokens=50, schema=schema)
    failure = result.outcomes["a"].failure
    assert "answered nothing after its thought" in failure.message
    assert "thinking_tokens: 0" in failure.hint


def test_a_repair_sends_the_answer_without_its_thought() -> None:
    texts = iter(['<think>secret</think>\n{"n": "three"}', '<think>secret</think>{"n": 3}'])
    model = FakeModel(lambda _: next(texts))
    assert ran(model, schema=SCHEMA).outputs == {"a": {"n": 3}}
    _, answer, problem = model.requests[1].messages
    assert answer.content == '{"n": "three"}'
    assert "secret" not in problem.content


@pytest.mark.parametrize("strategy", ["direct", "sample", "self-refine", "skeleton", "abstraction"])
@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_a_strategy_whose_model_only_thought(strategy: str, schema: Any) -> None:
    model = FakeModel(
        lambda _: "<think>hm", model="qwen3-8b", capabilities=Capabilities(structured_output=True)
    )
    with pytest.raises(ReasoningError) as failed:
        weft.think_sync("How many?", strategy=strategy, model=model, schema=schema)
    hint = failed.value.hint or ""
    assert "thinking_tokens: 0" in hint
    assert "max_tokens" not in hint  # more of them would not have helped


def test_errors_of_a_question_name_the_model_that_was_asked() -> None:
    model = FakeModel(["x"], model="qwen3-8b", capabilities=Capabilities())
    with pytest.raises(ReasoningError, match="qwen3-8b is not known to bound its thought"):
        weft.think_sync("?", model=model, options=weft.ThinkOptions(thinking_tokens=0))
    with pytest.raises(ReasoningError, match="qwen3-8b takes no token ids"):
        weft.think_sync("?", model=model, strategy="parathinker")
