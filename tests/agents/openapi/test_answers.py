"""Whatever a server answers: a value of the promised schema, or one typed error."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.agents.openapi.api_server import document
from tests.profile import examples
from weft.agents.openapi.answer import failure_of, value_of
from weft.agents.openapi.client import HttpAnswer
from weft.agents.openapi.document import read_document
from weft.agents.openapi.operation import find, read
from weft.agents.untrusted import Secrets
from weft.core.errors import ToolRaised, ToolResultError
from weft.validation import misfit

DOCUMENT = read_document(document())
ITEM = read(DOCUMENT, find(DOCUMENT, "getItem"), "getItem", "1")
PAGE = read(DOCUMENT, find(DOCUMENT, "page"), "page", "1")
NOTHING = Secrets(())

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("s3cret"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "name", "parts", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)
BODIES = st.binary(max_size=40) | VALUES.map(lambda value: json.dumps(value).encode())
MEDIA = st.sampled_from(
    [
        "application/json",
        "text/plain; charset=utf-16",
        "application/x+json",
        "text/",
        "",
        ";;=",
        "a",
    ]
) | st.text(st.characters(max_codepoint=255), max_size=12)
ANSWERS = st.builds(
    HttpAnswer,
    st.integers(100, 999),
    st.fixed_dictionaries({}, optional={"content-type": MEDIA, "content-encoding": st.just("br")}),
    BODIES,
)


@given(ANSWERS, st.sampled_from([ITEM, PAGE]))
@examples(300)
def test_a_value_or_a_typed_error(answer: HttpAnswer, operation: Any) -> None:
    try:
        value = value_of(operation, answer, NOTHING)
    except ToolResultError as error:
        said = str(error)
    else:
        said = ""
        json.dumps(value, allow_nan=False)
        schema = operation.responses.of(answer.status).schema
        assert schema is None or misfit(value, schema) is None
    assert said.isprintable()
    assert len(said) < 1_000


@given(ANSWERS)
@examples(100)
def test_what_a_failure_says_is_short_and_printable(answer: HttpAnswer) -> None:
    told = failure_of(PAGE, answer, NOTHING, retryable=True)
    assert isinstance(told, ToolRaised)
    assert str(told).isprintable()
    assert len(str(told)) < 500


@given(VALUES)
@examples(100)
def test_a_key_is_struck_out_wherever_it_stands(value: Any) -> None:
    secrets = Secrets(["KEY"], {"KEY": "s3cret"})
    answer = HttpAnswer(200, {"content-type": "application/json"}, json.dumps(value).encode())
    try:
        found = value_of(PAGE, answer, secrets)
    except ToolResultError:
        return
    assert "s3cret" not in json.dumps(found)
