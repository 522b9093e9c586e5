from __future__ import annotations

import json

import pytest

from tests.serving.text.splitting import fold
from weft.core.ports import ModelRequest
from weft.core.values import Message, ToolCall, ToolSpec
from weft.serving.text import FORMATS, FormatName, spell

ADD = ToolSpec("add", "Add ünits.", {"type": "object", "properties": {"a": {"type": "integer"}}})
CALLS = (ToolCall("1", "add", '{"a": 1.0}'), ToolCall("2", "add", '{"a": 2}'))
HERMES = """\
# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{"type": "function", "function": {"name": "add", "description": "Add ünits.", "parameters": \
{"type": "object", "properties": {"a": {"type": "integer"}}}}}
</tools>

For each function call, return a json object with function name and arguments within \
<tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""


def test_tools_are_described_in_a_system_prompt_and_no_longer_sent() -> None:
    asked = spell(ModelRequest((Message("user", "hi"),), tools=(ADD,)), "hermes")
    assert asked.messages == (Message("system", HERMES), Message("user", "hi"))
    assert asked.tools == ()


def test_a_system_prompt_that_is_there_comes_first() -> None:
    messages = (Message("system", "Be brief."), Message("user", "hi"))
    asked = spell(ModelRequest(messages, tools=(ADD,)), "hermes")
    assert asked.messages == (Message("system", f"Be brief.\n\n{HERMES}"), messages[1])


def test_tools_that_must_not_be_called_are_not_described() -> None:
    request = ModelRequest((Message("user", "hi"),), tools=(ADD,), tool_choice="none", schema={})
    asked = spell(request, "hermes")
    assert asked.messages == request.messages
    assert (asked.tools, asked.schema) == ((), {})


def test_a_required_call_is_demanded() -> None:
    request = ModelRequest((Message("user", "hi"),), tools=(ADD,), tool_choice="required")
    assert spell(request, "json").messages[0].content.endswith("at least one call.")


def test_a_schema_does_not_keep_the_model_from_calling() -> None:
    request = ModelRequest((Message("user", "hi"),), tools=(ADD,), schema={"type": "object"})
    assert spell(request, "hermes").schema is None
    assert spell(ModelRequest(request.messages, schema={"type": "object"}), "hermes").schema


@pytest.mark.parametrize("spelling", FORMATS)
def test_earlier_calls_are_spelled_as_they_would_be_read(spelling: FormatName) -> None:
    turn = Message("assistant", "Well.", CALLS)
    asked = spell(ModelRequest((Message("user", "hi"), turn)), spelling)
    text = asked.messages[1].content
    assert asked.messages[1] == Message("assistant", text)
    folded = fold([text], spelling)
    assert folded.text == "Well."
    assert folded.calls == tuple((call.name, call.arguments) for call in CALLS)


@pytest.mark.parametrize("spelling", FORMATS)
def test_the_description_holds_no_call(spelling: FormatName) -> None:
    system = spell(ModelRequest((Message("user", "hi"),), tools=(ADD,)), spelling).messages[0]
    assert fold([system.content], spelling).calls == ()
    assert json.dumps(dict(ADD.parameters)) in system.content


def test_results_of_parallel_calls_are_one_turn_in_their_order() -> None:
    messages = (
        Message("user", "hi"),
        Message("assistant", "", CALLS),
        Message("tool", "1", tool_call_id="1"),
        Message("tool", "2", tool_call_id="2"),
        Message("user", "and?"),
    )
    asked = spell(ModelRequest(messages), "hermes")
    wrapped = "<tool_response>\n1\n</tool_response>\n<tool_response>\n2\n</tool_response>"
    assert [message.role for message in asked.messages] == ["user", "assistant", "user", "user"]
    assert asked.messages[2] == Message("user", wrapped)
