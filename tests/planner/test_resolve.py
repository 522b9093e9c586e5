"""References and conditions, by themselves."""

from __future__ import annotations

from typing import Any

import pytest

from weft.core.errors import TypeMismatch, UnknownReference
from weft.planner.compile import follow, holds, resolve
from weft.planner.plan import Ref, StepCondition

RESULTS: dict[Any, Any] = {
    1: {"price": 4.5, "tags": ["a", "b"], "full name": "tea", "none": None},
    2: ["x", {"y": True}],
    "item": {"n": 0},
    "index": 3,
}


@pytest.mark.parametrize(
    ("ref", "value"),
    [
        (Ref(1, ("price",)), 4.5),
        (Ref(1, ("tags", 1)), "b"),
        (Ref(1, ("full name",)), "tea"),
        (Ref(1, ("none",)), None),
        (Ref(2), ["x", {"y": True}]),
        (Ref(2, (1, "y")), True),
        (Ref("item", ("n",)), 0),
        (Ref("index"), 3),
    ],
)
def test_a_reference_keeps_the_type_of_its_value(ref: Ref, value: object) -> None:
    found = follow(ref, RESULTS)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        (Ref(1, ("cost",)), "$1.cost does not exist: $1 is an object with price, tags"),
        (Ref(1, ("tags", 2)), "$1.tags[2] does not exist: $1.tags is a list of 2"),
        (Ref(1, ("price", 0)), "$1.price[0] does not exist: $1.price is a number"),
        (Ref(1, ("none", "x")), "$1.none.x does not exist: $1.none is null"),
        (Ref(2, ("x",)), "$2.x does not exist: $2 is a list of 2"),
        (Ref(2, (0, 0)), "$2[0][0] does not exist: $2[0] is a text"),
        (Ref(7), "$7 means nothing here"),
    ],
)
def test_a_path_into_nothing_is_named(ref: Ref, said: str) -> None:
    with pytest.raises(UnknownReference) as caught:
        follow(ref, RESULTS)
    assert caught.value.message.startswith(said)


def test_what_looks_like_a_reference_in_a_text_is_text() -> None:
    value = {"a": "$1.price", "b": (Ref(2, (0,)), "${2}"), "c": {"d": Ref(1, ("price",))}}
    assert resolve(value, RESULTS) == {"a": "$1.price", "b": ["x", "${2}"], "c": {"d": 4.5}}


@pytest.mark.parametrize(
    ("condition", "yes"),
    [
        (StepCondition(Ref(1, ("price",))), True),
        (StepCondition(Ref(1, ("none",))), False),
        (StepCondition(Ref("item", ("n",))), False),
        (StepCondition(Ref("item", ("n",)), "not"), True),
        (StepCondition(Ref(1, ("price",)), ">", 4), True),
        (StepCondition(Ref(1, ("price",)), "<=", 4), False),
        (StepCondition(Ref(1, ("tags",)), "==", ("a", "b")), True),
        (StepCondition(Ref(1, ("tags",)), "!=", ("a",)), True),
        (StepCondition(Ref("index"), "<", 4), True),
        (StepCondition(Ref("index"), ">=", 4), False),
    ],
)
def test_conditions(condition: StepCondition, yes: bool) -> None:
    assert holds(condition, RESULTS) is yes


def test_things_without_an_order_are_refused_in_words() -> None:
    with pytest.raises(TypeMismatch, match=r"\$1.tags is a list of 2: no order with 'tea'"):
        holds(StepCondition(Ref(1, ("tags",)), "<", "tea"), RESULTS)
