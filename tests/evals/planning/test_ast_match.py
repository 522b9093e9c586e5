"""BFCL's rules, also where they surprise."""

from __future__ import annotations

from typing import Any

import pytest

from evals.planning.quality import bfcl
from evals.planning.quality.ast_match import Call, call_error, gold_calls, parallel_error, standard

_FUNCTION = {
    "name": "book",
    "parameters": {
        "type": "dict",
        "properties": {
            "city": {"type": "string"},
            "nights": {"type": "integer"},
            "price": {"type": "float"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "sizes": {"type": "array", "items": {"type": "integer"}},
            "guest": {"type": "dict", "properties": {}},
            "guests": {"type": "array", "items": {"type": "dict"}},
            "quiet": {"type": "boolean"},
            "note": {"type": "any"},
        },
        "required": ["city"],
    },
}


def error(allowed: dict[str, list[Any]], **arguments: Any) -> str:
    return call_error(
        ("book", {"city": "Bonn", **arguments}),
        "book",
        {"city": ["Bonn"], **allowed},
        _FUNCTION["parameters"],  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    "said", ["April 1, 2024", "April 1,2024", "april 1 2024", "April-1_2024", "^April* 1/2024."]
)
def test_texts_are_compared_without_case_blanks_and_some_signs(said: str) -> None:
    assert standard(said) == "april12024"
    assert error({"note": ["April 1, 2024"]}, note=said) == ""


def test_single_quotes_count_as_double_ones_and_other_signs_count() -> None:
    assert error({"note": ['say "it"']}, note="say 'it'") == ""
    assert error({"note": ["a:b"]}, note="ab") == "wrong_value"


def test_an_integer_will_do_for_a_float_but_not_the_other_way_round() -> None:
    assert error({"price": [5.0]}, price=5) == ""
    assert error({"nights": [5]}, nights=5.0) == "wrong_type"
    assert error({"nights": [1]}, nights=True) == "wrong_type"
    assert error({"nights": [5]}, nights="5") == "wrong_type"


def test_what_may_be_left_out_is_marked_by_an_empty_text() -> None:
    assert error({"nights": [2, ""]}) == ""
    assert error({"nights": [2]}) == "missing_optional"
    assert error({"nights": [2, ""]}, nights=3) == "wrong_value"


def test_required_and_unknown_parameters() -> None:
    parameters: Any = _FUNCTION["parameters"]
    assert call_error(("book", {}), "book", {"city": [""]}, parameters) == "missing_required"
    assert error({}, nights=1) == "unexpected_parameter"
    assert error({"stars": [1]}, stars=1) == "unexpected_parameter"
    assert call_error(("look", {}), "book", {}, parameters) == "wrong_function"


def test_lists_are_compared_in_order_with_their_texts_in_standard_form() -> None:
    allowed = {"tags": [["Big bed", "sea-view"]]}
    assert error(allowed, tags=["bigbed", "Sea View"]) == ""
    assert error(allowed, tags=["sea view", "big bed"]) == "wrong_value"
    assert error(allowed, tags=["big bed", 3]) == "wrong_type_inside"
    assert error({"sizes": [[1, 2]]}, sizes=[1, 2]) == ""
    assert error({"sizes": [[1, 2]]}, sizes=[1.0, 2]) == "wrong_type_inside"
    assert error({"sizes": [[1, 2]]}, sizes=(1, 2)) == "wrong_type"


def test_items_are_not_looked_at_where_the_list_may_be_left_out() -> None:
    assert error({"sizes": [[1], ""]}, sizes=["a"]) == "wrong_value"  # and not wrong_type_inside


def test_objects_have_allowed_values_for_each_key() -> None:
    allowed = {"guest": [{"name": ["Ann"], "age": [30, ""]}]}
    assert error(allowed, guest={"name": "ann"}) == ""
    assert error(allowed, guest={"name": "ann", "age": 30}) == ""
    assert error(allowed, guest={"age": 30}) == "wrong_value"
    assert error(allowed, guest={"name": "ann", "dog": 1}) == "wrong_value"
    many = {"guests": [[{"name": ["Ann"]}, {"name": ["Bo"]}]]}
    assert error(many, guests=[{"name": "ann"}, {"name": "bo"}]) == ""
    assert error(many, guests=[{"name": "bo"}, {"name": "ann"}]) == "wrong_value"
    assert error(many, guests=[{"name": "ann"}]) == "wrong_value"


def test_a_variable_stands_for_a_value_of_another_type_and_is_compared_exactly() -> None:
    assert error({"nights": ["x"]}, nights="x") == ""
    assert error({"nights": ["x"]}, nights="X") == "wrong_value"
    assert error({"nights": ["x"]}, nights=3) == "wrong_value"


def _calls(*cities: str) -> list[Call]:
    return [("book", {"city": city}) for city in cities]


def test_parallel_calls_may_come_in_any_order_but_in_the_right_number() -> None:
    gold = [{"book": {"city": ["Bonn"]}}, {"book": {"city": ["Rom", "Rome"]}}]
    functions = [_FUNCTION]
    assert parallel_error(_calls("rome", "bonn"), gold, functions) == ""
    assert parallel_error(_calls("bonn"), gold, functions) == "wrong_count"
    assert parallel_error(_calls("bonn", "bonn"), gold, functions) == "wrong_value"
    assert parallel_error([*_calls("bonn"), ("look", {})], gold, functions) == "wrong_function"


def test_matching_is_greedy_as_published() -> None:
    gold = [{"book": {"city": ["Bonn", "Rome"]}}, {"book": {"city": ["Bonn"]}}]
    assert parallel_error(_calls("bonn", "rome"), gold, [_FUNCTION]) == "wrong_value"
    assert parallel_error(_calls("rome", "bonn"), gold, [_FUNCTION]) == ""


@pytest.mark.usefixtures("planner_data")
@pytest.mark.parametrize("category", bfcl.CATEGORIES)
def test_gold_against_gold_is_right(category: str) -> None:
    items = bfcl.items(category)
    assert len(items) == 200
    for item in items:
        calls = list(gold_calls(item.gold, item.functions))
        assert parallel_error(calls, item.gold, item.functions) == "", item.id
        assert parallel_error(calls[1:], item.gold, item.functions) == "wrong_count"


def test_functions_become_tools_with_json_schemas() -> None:
    nested = {
        "type": "dict",
        "properties": {
            "where": {"type": "tuple", "items": {"type": "float"}, "description": "place"},
            "what": {"type": "any"},
        },
        "required": ["where"],
    }
    tool = bfcl.tool({"name": "a.b", "description": "does", "parameters": nested})
    assert tool.name == "a.b"
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "where": {"type": "array", "items": {"type": "number"}, "description": "place"},
            "what": {"type": "string"},
        },
        "required": ["where"],
        "additionalProperties": False,
    }
