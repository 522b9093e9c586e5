"""What a Python programmer writes without thinking, written with handles."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.errors import BuildError


def test_a_handle_is_an_index() -> None:
    flow = weft.Flow("index")
    scores = flow.input("scores", list[int])
    names = flow.input("names", dict[str, str])
    at = flow.value({"id": "b", "n": 1}, name="at")
    flow.output(
        name=names[at.id],
        score=scores[at.n],
        last=scores[at.n + 1],
        some=scores[at.n :],
        two=scores[:2],
        each=flow.map(scores, lambda score, index: scores[index] + score),
        text=f"{names[at.id]}!",
    )
    flow.check()
    assert flow.run_sync(scores=[5, 6, 7], names={"a": "x", "b": "y"}).outputs == {
        "name": "y",
        "score": 6,
        "last": 7,
        "some": [6, 7],
        "two": [5, 6],
        "each": [10, 12, 14],
        "text": "y!",
    }


def test_an_index_of_another_flow_is_refused() -> None:
    flow, other = weft.Flow("one"), weft.Flow("two")
    with pytest.raises(BuildError, match="another flow"):
        flow.value([1])[other.value(0)]
    with pytest.raises(TypeError, match="slice"):
        flow.value([1])[:"a"]  # type: ignore[misc]


def test_maps_inside_maps_do_not_clash() -> None:
    flow = weft.Flow("nested")
    rows = flow.input("rows", list[list[int]])

    def row(x: Any) -> Any:
        double = flow.map(x, lambda x: flow.value(x * 2))
        return flow.map(double, lambda x: flow.map([x], lambda x: flow.value(x + 1)))

    first = flow.map(rows, row)
    second = flow.map(rows, row)
    double = flow.value("{{ first | length }}")  # the name of a node in the bodies above
    flow.output(first=first, second=second, double=double)
    flow.check()
    made = [[[3], [5]], [[7]]]
    result = flow.run_sync(rows=[[1, 2], [3]])
    assert result.outputs == {"first": made, "second": made, "double": 2}
    assert flow.document == weft.loads(flow.to_yaml()).document


def test_builtins_are_functions() -> None:
    flow = weft.Flow("builtins")
    words = flow.input("words", list[str])
    flow.output(
        length=flow.call(len, "abc"),
        upper=flow.call(str.upper, "abc"),
        sorted=flow.call(sorted, words, reverse=True),
        largest=flow.call(max, 3, flow.call(len, words)),
        number=flow.call(int, "12"),
        rounded=flow.call(round, 2.567, 1),
        lengths=flow.map(words, lambda word: flow.call(len, word)),
        total=flow.reduce(sum, [1, 2, 3]),
    )
    flow.check()
    assert flow.run_sync(words=["b", "aa"]).outputs == {
        "length": 3,
        "upper": "ABC",
        "sorted": ["b", "aa"],
        "largest": 3,
        "number": 12,
        "rounded": 2.6,
        "lengths": [1, 2],
        "total": 6,
    }
    flow.call(len)
    with pytest.raises(BuildError, match=r"`len` needs `obj`.*by position"):
        flow.check()


def test_positional_parameters_of_an_own_function() -> None:
    async def add(a: int, /, *more: int, times: int = 1) -> int:
        return (a + sum(more)) * times

    flow = weft.Flow("positional")
    flow.output(n=flow.call(add, 1, 2, 3, times=2))
    flow.check()
    assert flow.run_sync().outputs == {"n": 12}


def test_literal_braces() -> None:
    flow = weft.Flow("braces")
    name = flow.input("name", str)
    text = f"{weft.literal('write {{ name }} and {% if %}')} for {name}"
    flow.output(text=flow.value(text), alone=flow.value(weft.literal("{{ name }}")))
    flow.check()
    assert flow.run_sync(name="Ada").outputs == {
        "text": "write {{ name }} and {% if %} for Ada",
        "alone": "{{ name }}",
    }
    loaded = weft.loads(
        "name: x\ninputs: {name: string}\nnodes:\n"
        "  a: {value: '{% raw %}{{ name }}{% endraw %} for {{ name }}'}\noutputs: {a: '{{ a }}'}\n"
    )
    assert loaded.run_sync(name="Ada").outputs == {"a": "{{ name }} for Ada"}
