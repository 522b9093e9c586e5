from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.agents.loops.scripted_agent import call, says
from weft.agents.chat.reply_format import ReplyFormat
from weft.core.values import ToolSpec

PRICE = ToolSpec(
    "price",
    "",
    {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
)
TREE = ToolSpec(
    "tree",
    "",
    {
        "$id": "elsewhere",
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node"}, "again": {"$ref": "#"}},
        "required": ["root"],
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "below": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                },
                "required": ["name"],
                "additionalProperties": False,
            }
        },
    },
)
NESTED = {
    "type": "object",
    "properties": {"best": {"$ref": "#/$defs/Best"}},
    "required": ["best"],
    "$defs": {"Best": {"type": "integer"}},
}
MANY = ReplyFormat((PRICE, TREE), 2, many=True, answer=NESTED)
FORMS = {
    "one": ReplyFormat((PRICE, TREE), 1, answer=NESTED),
    "many": MANY,
    "many of one tool": ReplyFormat((PRICE,), 2, many=True),
    "join": ReplyFormat(replan=True),
    "last": MANY.last(),
}


def fits(form: ReplyFormat, text: str) -> bool:
    return bool(Draft202012Validator(form.schema()).is_valid(json.loads(text)))


def test_the_schema_is_exact() -> None:
    leaf = {"name": "a", "below": [{"name": "b"}]}
    assert fits(MANY, says(calls=[call("price", item="tea"), call("tree", root=leaf)]))
    assert fits(MANY, says(calls=[call("tree", root=leaf, again={"root": leaf})]))
    assert fits(MANY, says(answer={"best": 3}))
    wrong: list[dict[str, Any]] = [
        {"calls": []},
        {"calls": [call("price", item="tea")] * 3},
        {"calls": [call("price")]},
        {"calls": [call("nope", item="tea")]},
        {"calls": [call("tree", root={"name": "a", "below": [{"nome": "b"}]})]},
        {"calls": [call("tree", root=leaf, again={"root": {}})]},
        {"answer": {"best": "three"}},
        {"replan": "more"},
        {"call": call("price", item="tea")},
    ]
    assert not [following for following in wrong if fits(MANY, says(**following))]


def test_a_last_form_leaves_only_the_answer() -> None:
    assert MANY.last().final
    assert fits(MANY.last(), says(answer={"best": 3}))
    assert not fits(MANY.last(), says(calls=[call("price", item="tea")]))
    assert ReplyFormat(replan=True).last() == ReplyFormat()


def test_a_join_may_ask_for_more() -> None:
    assert fits(FORMS["join"], says(replan="milk"))
    assert not fits(FORMS["join"], says(answer=""))


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from objects(part)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_object_of_ours_is_closed_and_the_root_is_one(form: ReplyFormat) -> None:
    """Hosted servers take nothing else."""
    schema = form.schema()
    assert schema["type"] == "object"
    own = [part for part in objects(schema) if "thought" in part["properties"]]
    own += [part for part in objects(schema) if {"calls", "call"} & part["properties"].keys()]
    assert own
    assert all(part["additionalProperties"] is False for part in own)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_decoders_can_hold_a_model_to_it(form: ReplyFormat) -> None:
    llguidance = pytest.importorskip("llguidance")
    grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(form.schema()))
    assert not llguidance.LLMatcher.validate_grammar(grammar)
