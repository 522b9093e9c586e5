"""Misspelt keywords and values of a wrong kind are refused, with a remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import weft
from weft.errors import BuildError, InputError, UnknownReference, WeftError
from weft.testing import FakeModel


def search(query: str, limit: int = 3) -> list[str]:
    return [query] * limit


def anything(**values: object) -> object:
    return values


def made() -> weft.Flow:
    return weft.Flow("case", models={"small": FakeModel(["words"])})


def run(flow: Any, **values: Any) -> Any:
    flow.input("topic", str)
    flow.output(a=flow.model("small", "{{ topic }}", name="a"))
    return flow.run_sync(**{"topic": "tea", **values})


@pytest.mark.parametrize(
    ("call", "keyword", "remedy"),
    [
        (lambda f: f.model("small", "p", max_token=5), "max_token", "max_tokens"),
        (lambda f: f.model("small", "p", temprature=0), "temprature", "temperature"),
        (lambda f: f.model("small", "p", retries=3), "retries", "retry"),
        (lambda f: f.model("small", "{{ text }}", text="x"), "text", "args={"),
        (lambda f: f.model("small", "p", images=["a.png"]), "images", "args={"),
        (lambda f: f.tool(search, "tea", limt=3), "limt", "limit"),
        (lambda f: f.tool(search, "tea", args={"limt": 3}), "limt", "limit"),
        (lambda f: f.tool(search, "tea", timeot=3), "timeot", "timeout"),
        (lambda f: f.call(search, query="tea", retrys=3), "retrys", "retry"),
        (lambda f: f.reduce(search, [], lmit=3), "lmit", "limit"),
        (lambda f: f.map([1], lambda n: n, widht=2), "widht", "width"),
        (lambda f: f.join(f.value(1), mod="any"), "mod", "mode"),
        (lambda f: f.loop(1, lambda n: n, until="{{ 1 }}", max=2, on_limits=""), "", "on_limit"),
        (lambda f: f.branch("a", {"a": 1}, whn="{{ 1 }}"), "whn", "when"),
        (lambda f: f.ask("why?", nam="why"), "nam", "name"),
        (lambda f: f.value(1, cach=True), "cach", "cache"),
        (lambda f: f.input("x", str, defualt=1), "defualt", "default"),
        (lambda f: weft.Flow("x", model={}), "model", "models"),
        (lambda f: weft.Flow("x", dedline=3), "dedline", "deadline"),
        (lambda f: f.start({}, concurency=3), "concurency", "concurrency"),
        (lambda f: f.start(topic="tea"), "topic", "start({...})"),
        (lambda f: weft.Models(decoder="suffix"), "decoder", "decode"),
        (lambda f: weft.tool(timeout=3), "timeout", "timeout_s"),
        (lambda f: weft.ask_sync("why?", modl="m"), "modl", "model"),
        (lambda f: weft.think_sync("why?", stratgy="m"), "stratgy", "strategy"),
    ],
)
def test_unknown_keywords(call: Callable[[Any], object], keyword: str, remedy: str) -> None:
    with pytest.raises(BuildError, match=f"has no keyword `{keyword}") as caught:
        call(made())
    assert remedy in str(caught.value.hint)


def test_names_of_a_prompt_go_into_args() -> None:
    flow = made()
    flow.output(a=flow.model("small", "About {{ text }}", args={"text": "tea"}))
    assert flow.run_sync()["a"] == "words"


def test_a_function_with_any_names_takes_any() -> None:
    flow = made()
    flow.output(a=flow.call(anything, colour="red", retry=1))
    assert flow.run_sync()["a"] == {"colour": "red"}


@pytest.mark.parametrize(
    "call",
    [
        lambda f: f.branch(f.value(1), ["a", "b"]),
        lambda f: weft.Flow("x", models=["local:tiny"]),
        lambda f: weft.Flow("x", tools=[search]),
        lambda f: weft.Flow(3),
        lambda f: f.model("small", "p", tools="search"),
        lambda f: f.model(FakeModel(["x"]), "p"),
        lambda f: f.model("small", "p", args=["x"]),
        lambda f: f.tool(search, "tea", args=["x"]),
        lambda f: f.tool(search, "tea", alternatives="other"),
        lambda f: f.tool(3),
        lambda f: f.call(None),
        lambda f: f.map([1], 3),
        lambda f: f.map(3, lambda a, b, c: a),
        lambda f: f.join([f.value(1)]),
        lambda f: f.value(1, after=3),
        lambda f: f.value(1, retry="often"),
        lambda f: f.value(1, timeout="soon"),
        lambda f: f.value(object()),
        lambda f: f.run_sync("tea"),
        lambda f: run(f, listeners=3),
        lambda f: run(f, models=3),
        lambda f: run(f, tools=[search]),
        lambda f: run(f, clock=3),
        lambda f: run(f, run=3),
        lambda f: run(f, budget=3),
        lambda f: run(f, concurrency="many"),
        lambda f: run(f, concurrency=0),
        lambda f: run(f, max_nodes=2.5),
        lambda f: run(f, seed="x"),
        lambda f: run(f, deadline="soon"),
        lambda f: run(f, limits=[3]),
        lambda f: run(f, limits={"small": "x"}),
        lambda f: run(f, durability="always"),
        lambda f: run(f, journal=3),
    ],
)
def test_values_of_a_wrong_kind_are_typed_errors(call: Callable[[Any], object]) -> None:
    with pytest.raises(WeftError) as caught:
        call(made())
    assert caught.value.hint or "parameters" in caught.value.message


def test_a_limit_of_what_does_not_exist() -> None:
    with pytest.raises(UnknownReference, match="`smal`") as caught:
        run(made(), limits={"smal": 3})
    assert caught.value.hint == "did you mean `small`?"
    assert run(made(), limits={"small": 3}).ok


def test_misspelt_settings_and_inputs_of_a_run() -> None:
    for name, near in (("concurency", "concurrency"), ("deadline_s", "deadline")):
        with pytest.raises(InputError) as caught:
            run(made(), **{name: 3})
        assert caught.value.hint == f"did you mean `{near}`?"
    with pytest.raises(InputError, match="no input `topc`") as caught:
        run(made(), topc="tea")
    assert caught.value.hint == "did you mean `topic`?"


@pytest.mark.parametrize("deadline", [300, 300.0, "300s", "5m"])
def test_deadlines_are_spelt_alike(deadline: float | str) -> None:
    assert run(weft.Flow("d", models={"small": FakeModel(["w"])}, deadline=deadline)).ok
    assert run(made(), deadline=deadline, journal_wait="1m").ok
    assert weft.AskSettings(deadline=deadline).deadline == 300.0
