"""`flow.options(...)`: settings of a node apart from the arguments of its function."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.errors import BuildError
from weft.testing import FakeModel


def wait(topic: str, timeout: int = 1) -> str:
    return topic * timeout


def above(numbers: list[int], least: int) -> list[int]:
    return [number for number in numbers if number > least]


def made(name: str) -> Any:
    return weft.Flow(name, models={"small": FakeModel(["words"])})


def test_a_node_with_options_is_the_node_with_keywords() -> None:
    one, other = made("x"), made("x")
    for flow, tool, text, many, kept in (
        (
            one,
            one.options(retry=2, timeout="5s").tool(wait, topic="a"),
            one.options(name="text", when="{{ true }}").model("small", "p", max_tokens=3),
            one.options(after=[]).map([1, 2], lambda n: n, width=1),
            one.options(on_failure="skip").reduce(above, [1, 2], least=1),
        ),
        (
            other,
            other.tool(wait, topic="a", retry=2, timeout="5s"),
            other.model("small", "p", max_tokens=3, name="text", when="{{ true }}"),
            other.map([1, 2], lambda n: n, width=1, after=[]),
            other.reduce(above, [1, 2], least=1, on_failure="skip"),
        ),
    ):
        flow.output(tool=tool, text=text, many=many, kept=kept)
    assert one.document == other.document
    assert one.run_sync().outputs == {
        "tool": "a",
        "text": "words",
        "many": [1, 2],
        "kept": [2],
    }


def test_an_argument_may_be_called_like_an_option() -> None:
    flow = made("x")
    flow.output(a=flow.options(timeout="5s").tool(wait, "a", timeout=3))
    assert flow.run_sync()["a"] == "aaa"
    (step,) = flow.document.nodes.values()
    assert step.timeout == 5


def test_names_are_those_of_variables() -> None:
    flow = made("x")
    page = flow.options(retry=1).call(wait, topic="a")
    flow.output(a=page)
    assert list(flow.document.nodes) == ["page"]


def test_a_recursive_workflow_has_options_too() -> None:
    flow = made("x")
    n = flow.input("n", int)
    rest = flow.options(when=n > 0).workflow(flow, n=n - 1, max_depth=5)
    flow.output(n=n, rest=rest)
    assert flow.document.nodes["rest"].max_depth == 5


def test_what_it_refuses() -> None:
    flow = made("x")
    with pytest.raises(BuildError, match=r"flow.options has no keyword `retrys`") as caught:
        flow.options(retrys=2)
    assert "did you mean `retry`?" in str(caught.value.hint)
    with pytest.raises(BuildError, match="has no keyword `topc`"):
        flow.options(retry=2).tool(wait, topc="a")
    with pytest.raises(AttributeError, match="has no `output`; it has tool, call"):
        flow.options(retry=2).output(a=1)
