from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.calls import CallId, ModelCalled, ToolCalled
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest, Sampling
from weft.core.redaction import Redactor
from weft.core.values import Lossless, Message, ToolCall, ToolSpec
from weft.durability.calls.digest import CallDigests
from weft.durability.calls.drift import difference, model_changes, tool_changes

PLACE = (NodeId("n"), 1, CallId("model:x#0"))
TOOL = ToolSpec("find", "Find it.", {"type": "object", "properties": {"q": {"type": "string"}}})
REQUEST = ModelRequest(
    (Message("system", "Be brief."), Message("user", "What is it?")),
    sampling=Sampling(temperature=0, max_tokens=10),
    tools=(TOOL,),
)
PARAMETERS = (
    'the tool find: its parameters: {"[-properties": {"q": {"type": "string"}}, "-]type": "object"}'
)


def changes(request: ModelRequest, name: str = "main") -> tuple[str, ...]:
    return model_changes(ModelCalled(*PLACE, "main", REQUEST, 0.0), name, request)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"messages": (REQUEST.messages[0],)}, "1 messages, not 2"),
        (
            {"messages": (REQUEST.messages[0], Message("assistant", "What is it?"))},
            "message 2 is the assistant's, not the user's",
        ),
        (
            {"messages": (REQUEST.messages[0], Message("user", "What was it?"))},
            "message 2 (user): What [-i-]{+wa+}s it?",
        ),
        (
            {
                "messages": (
                    REQUEST.messages[0],
                    replace(REQUEST.messages[1], tool_calls=(ToolCall("1", "f", "{}"),)),
                )
            },
            "message 2 (user) has other tool calls",
        ),
        ({"sampling": Sampling(temperature=0.7, max_tokens=10)}, "temperature: 0 became 0.7"),
        ({"sampling": Sampling(temperature=0)}, "max_tokens: 10 became None"),
        ({"tools": ()}, "the tool find is not offered any more"),
        ({"tools": (TOOL, replace(TOOL, name="seek"))}, "the tool seek is offered"),
        (
            {"tools": (replace(TOOL, description="Find them."),)},
            "the tool find: its description: Find [-it-]{+them+}.",
        ),
        ({"tools": (replace(TOOL, parameters={"type": "object"}),)}, PARAMETERS),
        ({"schema": {"type": "object"}}, 'schema: [-null-]{+{"type": "object"}+}'),
        ({"adapter": "lora"}, 'adapter: [-null-]{+"lora"+}'),
        (
            {"decode": Lossless("ngram")},
            'decode: {"": "Lossless"{+, "method": "ngram"+}}',
        ),
    ],
)
def test_what_changed_is_said(change: dict[str, Any], said: str) -> None:
    assert changes(replace(REQUEST, **change)) == (said,)


def test_the_model_the_prompt_and_the_order_of_tools() -> None:
    assert changes(REQUEST, "other") == ("the model is other, not main",)
    ids = ModelCalled(*PLACE, "main", ModelRequest(prompt_token_ids=(1, 2, 3)), 0.0)
    asked = ModelRequest(prompt_token_ids=(1, 9, 3, 4))
    assert model_changes(ids, "main", asked) == (
        "the prompt's tokens differ from number 2 (4, not 3)",
    )
    two = (TOOL, replace(TOOL, name="seek"))
    before = ModelCalled(*PLACE, "main", replace(REQUEST, tools=two), 0.0)
    after = replace(REQUEST, tools=two[::-1])
    assert model_changes(before, "main", after) == ("the tools come in another order",)


def test_nothing_that_leaves_the_answer_alone_is_drift() -> None:
    same = replace(
        REQUEST, priority=3, timeout_s=5, cache_prefix="p", tools=(replace(TOOL, version="9"),)
    )
    assert changes(same) == ()
    digests = CallDigests(Redactor())
    assert digests.model("m", same) == digests.model("m", REQUEST)


def test_many_changes_are_counted() -> None:
    recorded = ToolCalled(*PLACE, "f", {}, "pure", "", 0.0)
    found = tool_changes(recorded, "f", {f"a{n}": n for n in range(12)})
    assert len(found) == 9
    assert found[-1] == "and 4 more"


def test_arguments_that_are_gone_and_long_or_wild_texts() -> None:
    recorded = ToolCalled(*PLACE, "f", {"q": "x" * 500, "gone": 1, "n": [1]}, "pure", "", 0.0)
    found = tool_changes(recorded, "f", {"q": "x" * 500 + "\x1b[31m" + "y" * 500, "n": [1]})
    assert found[1] == "argument gone is gone"
    assert "\x1b" not in found[0]
    assert len(found[0]) < 150
    assert len(found) == 2


@given(st.text(max_size=50), st.text(max_size=50))
def test_a_difference_is_short_and_told_where_there_is_one(old: str, new: str) -> None:
    said = difference(old, new)
    assert len(said) < 700
    assert ("[-" in said or "{+" in said) or old == new


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=3), _json), st.dictionaries(st.text(max_size=3), _json))
def test_digests_are_those_of_contents(one: dict[str, Any], other: dict[str, Any]) -> None:
    digests = CallDigests(Redactor())
    same = digests.tool("f", one) == digests.tool("f", other)
    # 1, 1.0 and true are equal to Python, and different to JSON.
    assert same is (repr(_sorted(one)) == repr(_sorted(other)))
    assert digests.tool("f", dict(reversed(one.items()))) == digests.tool("f", one)
    assert digests.tool("g", one) != digests.tool("f", one)
    recorded = ToolCalled(*PLACE, "f", one, "pure", "", 0.0)
    assert bool(tool_changes(recorded, "f", other)) is not same


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return list(map(_sorted, value)) if isinstance(value, list) else value
