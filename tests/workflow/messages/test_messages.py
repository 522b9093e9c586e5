"""`messages` of model nodes: roles, tool calls, several texts, lists from expressions."""

from typing import Any

import pytest

import weft
from weft.errors import BuildError, InputError
from weft.testing import FakeModel

HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "Weather in Ulm?"},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "name": "weather", "arguments": {"city": "Ulm"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "Rain"},
]
TEXT = """
name: chat
inputs: {history: array, question: string}
models: {small: local:smollm2-135m-instruct}
nodes:
  reply:
    model: small
    system: Be brief.
    messages: ["{{ history }}", {role: assistant, content: ["It rains", "in {{ question }}."]}]
    prompt: "And {{ question }}?"
outputs: {answer: "{{ reply }}"}
"""


def test_roles_tool_calls_several_texts_and_lists_from_expressions() -> None:
    model = FakeModel(["Sun."])
    flow = weft.loads(TEXT)
    result = flow.run_sync(history=HISTORY, question="Bonn", models={"small": model}, journal=None)
    assert result["answer"] == "Sun."
    assert model.requests[0].messages == (
        weft.Message("system", "Be brief."),
        weft.Message("user", "Weather in Ulm?"),
        weft.Message("assistant", "", (weft.ToolCall("c1", "weather", '{"city": "Ulm"}'),)),
        weft.Message("tool", "Rain", tool_call_id="c1"),
        weft.Message("assistant", "It rains\n\nin Bonn."),
        weft.Message("user", "And Bonn?"),
    )


def test_the_same_in_python_without_a_prompt() -> None:
    model = FakeModel(["Sun."])
    flow = weft.Flow("chat", models={"small": "local:smollm2-135m-instruct"})
    history = flow.input("history", list)
    given = [weft.Message("user", "{{ braces }}"), history, {"role": "user", "content": "Bonn?"}]
    flow.output(answer=flow.model("small", messages=given))
    flow.run_sync(history=HISTORY, models={"small": model}, journal=None)
    assert [message.content for message in model.requests[0].messages] == [
        "{{ braces }}", "Weather in Ulm?", "", "Rain", "Bonn?",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ("[{role: usr, content: hi}]", "'usr' is no role"),
        ("[{role: user, contnt: hi}]", "unknown key `contnt`"),
        ("[{role: user, content: [{imge: a.png}]}]", "unknown key `imge`"),
        ("[{role: tool, content: hi}]", "`tool_call_id`"),
        ("hello", "messages are a list"),
        ("[{role: user, content: [{image: '../x.png'}]}]", ""),
    ],
)
def test_a_wrong_message_is_refused_where_it_is_written(messages: str, why: str) -> None:
    text = TEXT.replace(TEXT[TEXT.index("messages:") : TEXT.index("\n    prompt")], "")
    text = text.replace("system: Be brief.", f"messages: {messages}")
    if not why:
        weft.loads(text)  # a path is looked up in the run
        return
    with pytest.raises(BuildError, match=why) as caught:
        weft.loads(text)
    assert "<text>:8:" in str(caught.value)


def test_a_wrong_message_of_a_run_names_its_place() -> None:
    result = weft.loads(TEXT).run_sync(
        history=[{"role": "user"}],
        question="Bonn",
        models={"small": FakeModel(["x"])},
        journal=None,
    )
    failure = result.outcomes["reply"].failure
    assert failure is not None
    assert "`messages[0][0]`: a message has no `content`" in failure.message
    assert failure.error == InputError.__name__
