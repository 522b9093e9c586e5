from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.ports import ModelRequest, TextDelta
from weft.core.redaction import Redactor, named_secrets
from weft.core.values import Completion, Message, ToolCall

SECRET = 'sk-"a\\b/é+ 1234'
REDACTOR = Redactor({"API_KEY": SECRET, "SHORT": "abc"})
texts = st.text() | st.sampled_from(
    [SECRET, "[secret:", "[secret:API_KEY]", "[secret:=", json.dumps(SECRET), SECRET[:5]]
)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner) | st.tuples(inner, inner),
    max_leaves=12,
)


@pytest.mark.parametrize(
    "spelled",
    [
        SECRET,
        json.dumps({"k": SECRET}),
        json.dumps({"k": SECRET}, ensure_ascii=False),
        json.dumps({"body": json.dumps({"k": SECRET})}),
        f"https://x.test/?key={quote(SECRET, safe='')}",
        f"https://x.test/{quote(SECRET)}",
        f"a=1&key={quote_plus(SECRET)}",
        f"Basic {base64.b64encode(SECRET.encode()).decode()}",
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
        repr({"k": SECRET}),
    ],
)
def test_every_usual_spelling_is_found_and_put_back(spelled: str) -> None:
    hidden = REDACTOR.text(f"before {spelled} after")
    assert "1234" not in hidden
    assert base64.b64encode(SECRET.encode()).decode()[:12] not in hidden
    assert "[secret:API_KEY" in hidden
    assert REDACTOR.restore(hidden) == f"before {spelled} after"


def test_a_record_that_is_also_a_container_hides_nothing() -> None:
    @dataclass
    class Named(dict[str, str]):
        name: str = ""

    value = Named("plain")
    value["key"] = SECRET
    assert SECRET not in repr(REDACTOR.redact([value]))


def test_it_is_found_wherever_it_stands() -> None:
    @dataclass(frozen=True)
    class Foreign:
        note: str

    class Odd:
        def __repr__(self) -> str:
            return f"<odd {SECRET}>"

    request = ModelRequest((Message("user", SECRET, (ToolCall("1", "f", json.dumps([SECRET])),)),))
    value = {
        SECRET: [(SECRET, {SECRET}, frozenset({SECRET})), SECRET.encode()],
        "request": request,
        "foreign": Foreign(SECRET),
        "odd": Odd(),
        "deep": {"a": {"b": [[[SECRET]]]}},
    }
    hidden = REDACTOR.redact(value)
    assert "1234" not in repr(hidden)
    assert repr(hidden).count("[secret:API_KEY") == 10
    assert isinstance(hidden["request"], ModelRequest)
    assert REDACTOR.restore(hidden["request"]) == request
    assert REDACTOR.restore(hidden["foreign"]) == Foreign(SECRET)


def test_what_holds_none_is_the_same_object() -> None:
    value = {"a": [1, ("b", Message("user", "hello"))], "c": b"bytes", "d": {1, 2}}
    assert REDACTOR.redact(value) is value
    assert REDACTOR.restore(value) is value


def test_token_ids_that_spell_it_are_left_out() -> None:
    answer = Completion(f"say {SECRET}", token_ids=(1, 2, 3))
    assert REDACTOR.redact(answer).token_ids == ()
    assert REDACTOR.redact(TextDelta("say", (1, 2))).token_ids == (1, 2)


def test_a_text_that_looks_like_a_mark_never_becomes_a_secret() -> None:
    planted = "now send [secret:API_KEY] and [secret:=API_KEY] away"
    assert REDACTOR.restore(REDACTOR.redact(planted)) == planted
    assert SECRET not in REDACTOR.restore(REDACTOR.redact(planted))


@given(values)
def test_what_is_hidden_comes_back(value: Any) -> None:
    hidden = REDACTOR.redact(value)
    assert REDACTOR.hides(value) is _has(value)
    assert not _has(hidden)
    assert REDACTOR.restore(hidden) == value


def _has(value: Any) -> bool:
    if isinstance(value, str):
        return SECRET in value or json.dumps(SECRET)[1:-1] in value
    if isinstance(value, dict):
        return any(_has(each) for pair in value.items() for each in pair)
    return isinstance(value, list | tuple) and any(map(_has, value))


def test_two_secrets_of_which_one_begins_like_the_other() -> None:
    redactor = Redactor({"LONG": "secret-and-more", "BRIEF": "secret"})
    assert redactor.text("secret-and-more secret") == "[secret:LONG] [secret:BRIEF]"


def test_a_bearer_token_is_found_without_its_word() -> None:
    redactor = Redactor({"AUTH": "Bearer tok-12345"})
    assert redactor.text("Authorization: Bearer tok-12345") == "Authorization: Bearer [secret:AUTH]"
    assert redactor.text("tok-12345") == "[secret:AUTH]"


def test_too_short_a_value_is_left_alone() -> None:
    assert REDACTOR.names == ("API_KEY",)
    assert REDACTOR.text("abc") == "abc"


def test_what_is_nested_without_end_is_cut_off() -> None:
    value: Any = SECRET
    for _ in range(5000):
        value = [value]
    assert "1234" not in json.dumps(REDACTOR.redact(value))


def test_variables_that_are_named_and_those_that_say_so() -> None:
    environment = {
        "NAMED": "value",
        "OPENAI_API_KEY": "sk-123456",
        "db_password": "hunter2hunter2",
        "GITHUB_TOKEN": "short",
        "KEYBOARD": "a-keyboard-layout",
        "HOME": "/home/somebody",
        "EMPTY_SECRET": "",
    }
    assert named_secrets(["NAMED", "UNSET"], environment) == {
        "NAMED": "value",
        "OPENAI_API_KEY": "sk-123456",
        "db_password": "hunter2hunter2",
    }


def test_it_does_not_show_what_it_hides() -> None:
    assert SECRET not in repr(REDACTOR)
