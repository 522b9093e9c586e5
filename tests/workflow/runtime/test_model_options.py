"""Wrong options of models behind servers are found before a run, at their place, with a remedy."""

from __future__ import annotations

import pytest

import weft
from weft.errors import SourceError

SERVER = "{use: openai, model: m, base_url: 'http://127.0.0.1:1/v1', options: {%s}}"
VLLM = "{use: vllm, model: m, options: {%s}}"
HOSTED = "{use: anthropic, model: m, options: {%s}}"
REST = 'nodes: {a: {model: m, prompt: hi}}\noutputs: {a: "{{ a }}"}\n'
LOCAL = "{use: local, model: smollm2-135m-instruct, options: {%s}}"


@pytest.mark.parametrize(
    ("model", "options", "at", "words", "remedy"),
    [
        (SERVER, "reasoning: thonk", "thonk", "`reasoning` is one of", "did you mean `think`?"),
        (VLLM, "reasoning: thonk", "thonk", "`reasoning` is one of", "did you mean `think`?"),
        (LOCAL, "reasoning: thonk", "thonk", "`reasoning` is one of", "did you mean `think`?"),
        (SERVER, "tool_format: hermse", "hermse", "`tool_format`", "did you mean `hermes`?"),
        (SERVER, "thinking: off", "off", "mapping of `off` and `budget`", "reasoning_effort: none"),
        (SERVER, "thinking: {of: {a: 1}}", "of", "'of'", "did you mean `off`?"),
        (SERVER, "thinking: {off: 3}", "3", "`off` of the option `thinking`", "such as"),
        (VLLM, "thinking: {budget: 3}", "3", "is the name of a field, not 3", "such as"),
        (SERVER, "thinking: {budget: ''}", "''", "is the name of a field, not ''", "such as"),
        (SERVER, "thinking: {budget: messages}", "messages", "names messages", "own field"),
        (SERVER, "thinking: {budget: max_tokens}", "max_tokens", "names max_tokens", "own field"),
        (SERVER, "thinking: {off: {stream: no}}", "{stream", "names stream", "own field"),
        (SERVER, "extra_body: {prompt: hi}", "{prompt", "extra fields prompt", "own fields"),
        (SERVER, "extra_body: 3", "3", "`extra_body` is a mapping", "such as"),
        (SERVER, "connections: lots", "lots", "`connections` is a number above 0", ""),
        (SERVER, "idle_timeout_s: -1", "-1", "`idle_timeout_s` is a number above 0", ""),
        (HOSTED, "thinking: adaptiv", "adaptiv", "`thinking` is adaptive", "mean `adaptive`?"),
        (HOSTED, "thinking: 'off'", "'off'", "`thinking` is adaptive", "mean `disabled`?"),
        (HOSTED, "thinking: false", "false", "`thinking` is adaptive", "mean `disabled`?"),
        (HOSTED, "ignore: [temprature]", "[temp", "not 'temprature'", "mean `temperature`?"),
    ],
)
def test_a_wrong_option_is_found_at_its_place(
    model: str, options: str, at: str, words: str, remedy: str
) -> None:
    declared = f"  m: {model % options}"
    text = f"name: x\nmodels:\n{declared}\n{REST}"
    with pytest.raises(SourceError) as raised:
        weft.loads(text).check()
    assert words in raised.value.message
    assert remedy in (raised.value.hint or "")
    column = declared.index(at, declared.index("options")) + 1
    assert (raised.value.line, raised.value.column) == (3, column)


@pytest.mark.parametrize(
    "thinking",
    [
        "{off: {reasoning_effort: none}}",
        "{budget: thinking_budget}",
        "{off: {chat_template_kwargs: {enable_thinking: false}}, budget: reasoning_tokens}",
    ],
)
def test_fields_of_a_server_for_thoughts_are_right(thinking: str) -> None:
    model = SERVER % f"thinking: {thinking}, reasoning: think-open, tool_format: json"
    weft.loads(f"name: x\nmodels: {{m: {model}}}\n{REST}").check()
