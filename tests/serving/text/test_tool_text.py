from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.profile import examples
from tests.serving.text.splitting import Folded, cuts, fold
from weft.serving.text import FORMATS, FormatName, FoundCall, Splitter

A = '{"a": 1, "b": 2}'
ADD = ("add", A)
TIME = ("get_time", "{}")
HERMES = f'<tool_call>\n{{"name": "add", "arguments": {A}}}\n</tool_call>'
LLAMA = f'{{"name": "add", "parameters": {A}}}'
MISTRAL = f'[TOOL_CALLS][{{"name": "add", "arguments": {A}}}]'

CASES: dict[str, tuple[FormatName, str, Folded]] = {
    "hermes": ("hermes", HERMES, Folded("", calls=(ADD,))),
    "hermes after text": ("hermes", f"Let me see.\n\n{HERMES}", Folded("Let me see.", "", (ADD,))),
    "hermes before text": ("hermes", f"{HERMES}\n Done. ", Folded("Done. ", "", (ADD,))),
    "hermes twice": ("hermes", f"{HERMES}\n{HERMES}\n", Folded("", "", (ADD, ADD))),
    "hermes without closing tags": (
        "hermes",
        '<tool_call>{"name": "add", "arguments": {}}<tool_call>{"name": "get_time"}',
        Folded("", "", (("add", "{}"), TIME)),
    ),
    "hermes with the tag in a string": (
        "hermes",
        '<tool_call>{"name": "f", "arguments": {"x": "</tool_call>\\"}"}}</tool_call>',
        Folded("", "", (("f", '{"x": "</tool_call>\\"}"}'),)),
    ),
    "hermes array": (
        "hermes",
        '<tool_call>[{"name": "f", "arguments": null}, {"name": "g"}]</tool_call>',
        Folded("", "", (("f", "{}"), ("g", "{}"))),
    ),
    "arguments as text": (
        "hermes",
        '<tool_call>{"name": "f", "arguments": "{\\"x\\": 1}"}</tool_call>',
        Folded("", "", (("f", '{"x": 1}'),)),
    ),
    "numbers and escapes stay as they are": (
        "hermes",
        '<tool_call>{"arguments": {"x": 1.10e5, "y": "\\u00fc\\ud800"}, "name": "f"}</tool_call>',
        Folded("", "", (("f", '{"x": 1.10e5, "y": "\\u00fc\\ud800"}'),)),
    ),
    "another call after a broken one": (
        "hermes",
        f'<tool_call>{{"name": "f" oops</tool_call>{HERMES}',
        Folded('<tool_call>{"name": "f" oops</tool_call>', "", (ADD,)),
    ),
    "a call right behind an opening tag": (
        "hermes",
        f"<tool_call> {HERMES}",
        Folded("<tool_call>", "", (ADD,)),
    ),
    "llama": ("json", LLAMA, Folded("", "", (ADD,))),
    "llama with its tag": ("json", f"<|python_tag|>{LLAMA}", Folded("", "", (ADD,))),
    "llama twice": ("json", f"{LLAMA}; {LLAMA}", Folded("", "", (ADD, ADD))),
    "llama array": ("json", f" [{LLAMA}, {LLAMA}]\n", Folded("", "", (ADD, ADD))),
    "llama in a fence": ("json", f"```json\n{LLAMA}\n```", Folded("```json```", "", (ADD,))),
    "llama indented": ("json", f"Sure:\n  {LLAMA}", Folded("Sure:", "", (ADD,))),
    "json within a line": ("json", f"I say {LLAMA}", Folded(f"I say {LLAMA}")),
    "json that calls nobody": (
        "json",
        '{"name": "Ada", "age": 36}\n',
        Folded('{"name": "Ada", "age": 36}\n'),
    ),
    "mistral": ("mistral", MISTRAL, Folded("", "", (ADD,))),
    "mistral by name": (
        "mistral",
        f"Yes. [TOOL_CALLS]add[ARGS]{A}[TOOL_CALLS]get_time{{}}",
        Folded("Yes.", "", (ADD, TIME)),
    ),
    "mistral with an id": (
        "mistral",
        f"[TOOL_CALLS]add[CALL_ID]abc123def[ARGS]{A}",
        Folded("", "", (ADD,)),
    ),
    "mistral after a head that is none": (
        "mistral",
        f"[TOOL_CALLS]well, {MISTRAL}",
        Folded("[TOOL_CALLS]well,", "", (ADD,)),
    ),
}


@pytest.mark.parametrize(("spelling", "text", "wanted"), CASES.values(), ids=CASES.keys())
def test_whole_and_character_by_character(spelling: FormatName, text: str, wanted: Folded) -> None:
    assert fold([text], spelling) == wanted
    assert fold(text, spelling) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>",
        "<tool_cal",
        "<tool_call>{",
        '<tool_call>{"name": "f", "argum',
        '<tool_call>{"arguments": {}}</tool_call>',
        '<tool_call>{"name": 3, "arguments": {}}</tool_call>',
        '<tool_call>{"name": "", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "f", "arguments": [1]}</tool_call>',
        '<tool_call>{"name": "f", "arguments": "no"}</tool_call>',
        '<tool_call>{"name": "f", "arguments": {"x": NaN}}</tool_call>',
        '<tool_call>{"name": "f", "arguments": {"x": 01}}</tool_call>',
        '<tool_call>{"name": "f", "arguments": {"x": "a\nb"}}</tool_call>',
        "<tool_call>{'name': 'f', 'arguments': {}}</tool_call>",
        "<tool_call>[]</tool_call>",
        '<tool_call>{"name": "f", "arguments": ' + "[" * 5000 + "</tool_call>",
        '<tool_call>{"name": "f", "arguments": {"x": ' + "1" * 9999 + "}}</tool_call>",
        "<tool_call>" + " " * 999 + "{}",
        "  \n",
        "",
    ],
)
def test_what_is_malformed_or_cut_stays_text(text: str) -> None:
    assert fold([text], "hermes") == Folded(text)
    assert fold(text, "hermes") == Folded(text)


def test_a_call_comes_as_soon_as_it_is_complete() -> None:
    splitter = Splitter(None, FORMATS["hermes"])
    start, end = HERMES.split("}\n</tool_call>")[0], "}"
    assert splitter.feed(start) == []
    assert splitter.holding
    assert splitter.feed(end) == [FoundCall(*ADD)]


FRAGMENTS = [
    *("<tool_call>", "</tool_call>", "<tool", "[TOOL_CALLS]", "[ARGS]", "<|python_tag|>"),
    *('{"name": "add", "arguments": {"a": 1}}', '{"name": "add", "parameters": {}}'),
    *('{"name": ', '"add"', "add", "{}", "{", "}", "[", "]", '"', "\\", "\\u00", ",", ":", ";"),
    *("\n", " ", "  \n ", "1e", "tru", "é\u2028", "text", "\x1c", "<", "<think>", "</think>"),
]
noise = st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join)


@pytest.mark.parametrize("spelling", FORMATS)
@pytest.mark.parametrize("reasoning", [None, "think", "think-open"])
@examples(150)
@given(data=st.data())
def test_any_split_of_any_text_gives_the_same(
    spelling: FormatName, reasoning: Any, data: st.DataObject
) -> None:
    text = data.draw(noise | st.sampled_from([case[1] for case in CASES.values()]))
    whole = fold([text], spelling, reasoning)
    assert fold(text, spelling, reasoning) == whole
    assert fold(data.draw(cuts(text)), spelling, reasoning) == whole


@pytest.mark.parametrize("spelling", FORMATS)
@given(text=noise)
def test_text_is_lost_only_around_calls(spelling: FormatName, text: str) -> None:
    folded = fold([text], spelling)
    for name, arguments in folded.calls:
        assert name
        assert isinstance(json.loads(arguments), dict)
    if not folded.calls:
        assert folded.text == text


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@examples(60)
@given(
    arguments=st.dictionaries(st.text(max_size=5), json_values, max_size=3),
    indent=st.none() | st.integers(0, 2),
    ascii_only=st.booleans(),
    data=st.data(),
)
@example({"x": "</tool_call>"}, None, True, None)
def test_any_arguments_come_through(
    arguments: dict[str, Any], indent: int | None, ascii_only: bool, data: st.DataObject | None
) -> None:
    written = json.dumps(arguments, indent=indent, ensure_ascii=ascii_only)
    texts: dict[FormatName, str] = {
        "hermes": f'<tool_call>{{"name": "add", "arguments": {written}}}</tool_call>',
        "json": f'{{"name": "add", "parameters": {written}}}',
        "mistral": f"[TOOL_CALLS]add[ARGS]{written}",
    }
    for spelling, text in texts.items():
        pieces = list(text) if data is None else data.draw(cuts(text))
        assert fold(pieces, spelling) == Folded("", "", (("add", written),))
