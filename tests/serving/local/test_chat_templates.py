"""Eight families' chat templates, rendered and tokenized as local models and clients do it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.chat_templates import FAMILIES, Family
from tests.golden_files import assert_golden
from tests.serving.text.splitting import fold
from weft.core.values import ToolCall, ToolSpec
from weft.errors import ModelRequestError
from weft.serve import Message, ModelRequest
from weft.serving.local import chat_template
from weft.serving.local.tokenizer import LocalTokenizer
from weft.serving.text import spell
from weft.serving.text.reasoning_forms import marks_of

GOLDEN = Path(__file__).parents[2] / "golden" / "chat_templates"
SYSTEM, USER = Message("system", "Be brief."), Message("user", "How is Rome?")
TOOL = ToolSpec(
    "weather",
    "The weather in a city",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
CALLED = (
    USER,
    Message("assistant", "", (ToolCall("call_1234", "weather", '{"city": "Rome", "n": 1.0}'),)),
    Message("tool", "sunny", tool_call_id="call_1234"),
)
THOUGHTS = {
    "think": "<think>\nHm.\n</think>\n\n",
    "think-open": "Hm.\n</think>\n\n",
    "mistral": "[THINK]Hm.[/THINK]",
    "granite": "<think>Hm.</think>\n",
    "harmony": "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant",
}
BEGINNING = Message("assistant", "It is")


class Today(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> Today:
        return cls(2026, 1, 2, tzinfo=tz)


@pytest.fixture(autouse=True)
def _date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "datetime", Today)


@pytest.fixture(params=FAMILIES, name="family")
def _family(request: pytest.FixtureRequest) -> Family:
    return FAMILIES[request.param]


@pytest.fixture
def tokens(family: Family, tmp_path: Path) -> LocalTokenizer:
    return LocalTokenizer.read(family.write(tmp_path / family.name))


def thought(family: Family) -> str:
    return THOUGHTS[family.style] if family.style else ""


def conversations(family: Family) -> dict[str, tuple[tuple[Message, ...], dict[str, Any]]]:
    """Conversations by name, with variables of the template."""
    earlier = Message("assistant", thought(family) + "Sunny.")
    asked = ModelRequest((SYSTEM, *CALLED), tools=(TOOL,))
    off, on = dict(family.silent), dict(family.thinking)
    return {
        "a question": ((USER,), {}),
        "a system prompt": ((SYSTEM, USER), {}),
        "tools in the system prompt": (spell(asked, family.tool_format).messages, {}),
        "calls and results as messages": (CALLED, {}),
        "an earlier answer with a thought": ((USER, earlier, Message("user", "And Oslo?")), {}),
        "an answer that goes on": ((USER, BEGINNING), {}),
        "thinking on": ((USER,), on),
        "thinking off": ((USER,), off),
        "an answer that goes on, thinking off": ((USER, BEGINNING), off),
    }


def stream(tokens: LocalTokenizer, family: Family, ids: list[int]) -> str:
    """A line for each special token, and one for each text between them."""
    named = {tokens.special_token(text): text for text in (*family.special, *family.tags)}
    lines: list[str] = []
    text: list[int] = []
    for token in (*ids, None):
        if token is not None and token not in named:
            text.append(token)
            continue
        if text:
            lines.append(f"  {tokens.decode(text)!r}")
            text = []
        if token is not None:
            lines.append(named[token])
    return "\n".join(lines)


def rendered(
    tokens: LocalTokenizer, messages: tuple[Message, ...], given: dict[str, Any]
) -> list[int]:
    return tokens.encode_chat(messages, ModelRequest(messages).continues, template=given)


def test_the_streams_are_those_of_the_golden_file(tokens: LocalTokenizer, family: Family) -> None:
    parts = []
    for name, (messages, given) in conversations(family).items():
        try:
            told = stream(tokens, family, rendered(tokens, messages, given))
        except ModelRequestError as error:
            told = f"refused: {error.message}"
        parts.append(f"# {name}\n{told}\n")
    assert_golden(GOLDEN / f"{family.name}.txt", "\n".join(parts))


def test_the_form_of_thoughts_is_the_one_the_template_shows(
    tokens: LocalTokenizer, family: Family
) -> None:
    assert tokens.reasoning_style() == family.style
    assert tokens.reasoning_style(family.thinking) == family.style
    assert tokens.reasoning_style(family.silent) == family.style


def test_a_thought_in_that_form_is_told_from_the_answer(family: Family) -> None:
    answer = f"{thought(family)}{ANSWERS.get(family.name, 'Sunny.')}"
    folded = fold(answer, None, family.style)
    assert folded.text == "Sunny."
    assert folded.reasoning.strip() == ("Hm." if family.style else "")


ANSWERS = {
    "gpt-oss": "<|channel|>final<|message|>Sunny.<|return|>",
    "granite": "<response>Sunny.</response>",
}


def test_no_message_spells_a_special_token(tokens: LocalTokenizer, family: Family) -> None:
    """Nor do results of tools, arguments of calls, or variables of the template."""

    def count(text: str) -> int:
        call = ToolCall("call_1234", "weather", f'{{"city": "{text}"}}')
        chat = (Message("user", text), Message("assistant", text), Message("user", text))
        given = {"model_identity": text, "date_string": text}
        ids = rendered(tokens, chat, given)
        if family.name != "gemma3":  # which has no roles for tools
            called = Message("assistant", "", (call,))
            result = Message("tool", text, tool_call_id="call_1234")
            ids += rendered(tokens, (USER, called, result), given)
        return sum(tokens.decode([token]) in family.special for token in ids)

    assert count("".join(family.special)) == count("harmless")


def test_an_answer_that_goes_on_is_no_part_of_a_thought(
    tokens: LocalTokenizer, family: Family
) -> None:
    text = tokens.decode(rendered(tokens, (USER, BEGINNING), {}))
    assert text.endswith(BEGINNING.content)
    marks = [mark for mark in marks_of(family.style) if mark in text]
    if family.style in ("think", "think-open", "mistral"):
        assert text.count("<think>") == text.count("</think>")
        assert text.count("[THINK]") == text.count("[/THINK]")
    elif family.style == "harmony":
        assert text.endswith("<|start|>assistant<|channel|>final<|message|>It is")
    else:
        assert not marks


@pytest.mark.parametrize(
    "name", ["messages", "tools", "add_generation_prompt", "chat_template", "bos_token", "tokenize"]
)
def test_what_weft_renders_is_no_variable(tokens: LocalTokenizer, name: str) -> None:
    with pytest.raises(ModelRequestError, match=f"cannot set '{name}'"):
        tokens.encode_chat((USER,), template={name: "x"})


def test_deep_variables_are_refused(tokens: LocalTokenizer) -> None:
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    with pytest.raises(ModelRequestError, match="nested deeper"):
        tokens.encode_chat((USER,), template={"documents_list": deep})
