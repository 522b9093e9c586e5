"""Mistakes in Python programs are found before a run, and the error says what to write."""

from __future__ import annotations

import enum
import operator
import sys
import typing
from collections.abc import Callable
from typing import Any, Literal

import pytest

import weft
from weft.errors import BuildError, TypeMismatch
from weft.testing import FakeModel


def search(topic: str, limit: int = 3) -> list[str]:
    return [topic] * limit


def several(*texts: str) -> str:
    return "".join(texts)


def made(**inputs: Any) -> Any:
    flow = weft.Flow("case", models={"small": FakeModel(["words"])})
    for name, kind in inputs.items():
        flow.input(name, kind)
    return flow


@pytest.mark.parametrize("messages", [None, "omitted"])
def test_a_model_without_prompt_and_messages(messages: object) -> None:
    flow = made()
    with pytest.raises(BuildError, match="neither a prompt nor messages") as caught:
        flow.model("small", **({"messages": None} if messages is None else {}))
    assert 'flow.model("small", "prompt")' in str(caught.value.hint)


def test_messages_alone_are_enough() -> None:
    flow = made()
    flow.output(a=flow.model("small", messages=[{"role": "user", "content": "tea"}]))
    assert flow.run_sync()["a"] == "words"


@pytest.mark.parametrize(
    ("call", "why", "form"),
    [
        (lambda f: f.loop(lambda n: n, start=1), "`start` is given by position", "flow.loop(start"),
        (lambda f: f.loop(1, lambda n: n, until="{{ 1 }}"), "max", "until=..., max=..."),
        (lambda f: f.map([1]), "'body'", "flow.map(over, body)"),
        (lambda f: f.branch(True), "'cases'", "flow.branch(on, cases)"),
        (lambda f: f.reduce(len), "'over'", "flow.reduce(function, over)"),
        (lambda f: f.model(schema=int), "'model'", "flow.model(model, prompt)"),
        (lambda f: f.model("small", "a", "b"), "too many positional", "flow.model(model, prompt)"),
        (lambda f: f.ask(), "'question'", "flow.ask(question, schema)"),
        (lambda f: f.value(), "'value'", "flow.value(value)"),
        (lambda f: f.break_if(True), "'value'", "flow.break_if(condition, value)"),
        (lambda f: f.workflow(), "'workflow'", "flow.workflow(workflow)"),
    ],
)
def test_a_call_that_does_not_fit(call: Callable[[Any], object], why: str, form: str) -> None:
    with pytest.raises(BuildError) as caught:
        call(made())
    assert why in caught.value.message
    assert form in str(caught.value.hint)


def test_a_type_error_of_a_body_stays_itself() -> None:
    def body(item: Any) -> object:
        return search()  # type: ignore[call-arg]

    with pytest.raises(TypeError, match=r"search\(\) missing"):
        made().map(["a"], body)


def test_a_flow_that_runs_itself_needs_a_depth() -> None:
    flow = made(n=int)
    with pytest.raises(BuildError, match="runs itself without `max_depth`") as caught:
        flow.workflow(flow, n=1)
    assert "max_depth=8" in str(caught.value.hint)


def test_a_misspelt_depth() -> None:
    flow = made(n=int)
    with pytest.raises(BuildError, match="has no input `max_deph`") as caught:
        flow.workflow(flow, n=1, max_deph=3)
    assert caught.value.hint == "did you mean `max_depth`?"


def test_an_input_may_be_like_an_option() -> None:
    inner = weft.Flow("inner")
    inner.output(twice=inner.value([inner.input("max_dept", int)] * 2))
    flow = made()
    flow.output(a=flow.workflow(inner, max_dept=3).twice)
    assert flow.run_sync()["a"] == [3, 3]


def test_a_flow_without_outputs() -> None:
    flow = made()
    flow.value(1)
    with pytest.raises(BuildError, match="the flow has no outputs") as caught:
        flow.check()
    assert "flow.output(" in str(caught.value.hint)


def test_a_flow_that_is_not_finished() -> None:
    other = weft.Flow("other")
    other.input("n", int)
    with pytest.raises(BuildError, match="`other` cannot be run yet") as caught:
        made().workflow(other, n=1)
    assert "max_depth" in str(caught.value.hint)


@pytest.mark.parametrize(("function", "name"), [(len, "obj"), (several, "texts")])
def test_a_tool_takes_its_arguments_by_name(function: Any, name: str) -> None:
    with pytest.raises(BuildError, match=f"takes `{name}` by position only") as caught:
        made().tool(function, "ab")
    assert f"flow.call({function.__name__}, ...)" in str(caught.value.hint)


def test_call_takes_such_functions() -> None:
    flow = made(text=str)
    text = flow.value("{{ text }}")
    flow.output(size=flow.call(len, text), both=flow.call(several, text, "c"))
    flow.output(number=flow.call(int, flow.value("12")))
    assert flow.run_sync(text="ab").outputs == {"size": 2, "both": "abc", "number": 12}


@pytest.mark.parametrize(
    ("use", "remedy"),
    [
        (int, "flow.call(int, hit)"),
        (float, "flow.call(float, hit)"),
        (operator.index, "flow.call(int, hit)"),
        (lambda hit: hit.title.upper(), "flow.call(function, hit.title)"),
        (lambda hit: hit.title.upper(), '"{{ hit.title | upper }}"'),
        (lambda hit: hit(), "flow.call(function, hit)"),
    ],
)
def test_a_value_that_exists_only_in_a_run(use: Callable[[Any], object], remedy: str) -> None:
    flow = made()
    hit = flow.value({"title": "tea"}, name="hit")
    with pytest.raises(TypeError, match="it has a value only in a run") as caught:
        use(hit)
    assert remedy in str(caught.value)


def test_a_handle_is_no_function() -> None:
    flow = made()
    hit = flow.value(1)
    for call in (flow.tool, flow.call):
        with pytest.raises(BuildError, match="takes a function or its name"):
            call(hit)
    for body in (flow.map, flow.reduce):
        with pytest.raises(BuildError, match="function"):
            body(*((["a"], hit) if body == flow.map else (hit, ["a"])))


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


@pytest.mark.parametrize(
    ("kind", "cases", "hint"),
    [
        (bool, {True: 1, "flase": 2}, "did you mean `false`?"),
        (bool, {"yess": 1, "default": 2}, "there are: true, false"),
        (Literal["yes", "no"], {"yess": 1, "no": 2}, "did you mean `yes`?"),
        (Literal["yes", "no"], {True: 1, "no": 2}, "there are: yes, no"),
        (Mood, {Mood.GOOD: 1, "bat": 2}, "did you mean `bad`?"),
        (int, {"one": 1}, "`default` is taken by all others"),
        (Literal["yes", "no"] | None, {"yes": 1, "nil": 2}, "`default` is taken by all others"),
    ],
)
def test_a_case_that_no_value_takes(kind: Any, cases: dict[object, object], hint: str) -> None:
    flow = made(mood=kind)
    flow.output(a=flow.branch("{{ mood }}", cases))
    with pytest.raises(TypeMismatch, match="`branch` never has the case") as caught:
        flow.check()
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("kind", "cases", "value"),
    [
        (bool, {True: "a", False: "b"}, True),
        (Literal["yes", "no"], {"yes": "a"}, "yes"),
        (Mood, {Mood.GOOD: "a", Mood.BAD: "b"}, "good"),
        (int, {1: "a", "default": "b"}, 1),
        (float, {1.5: "a"}, 1.5),
        (Literal["yes", "no"] | None, {None: "a", "yes": "b"}, None),
        (str, {"anything": "a"}, "anything"),
        (None, {"x": "a", True: "b"}, "x"),
    ],
)
def test_the_cases_that_values_take(kind: Any, cases: dict[object, object], value: object) -> None:
    flow = made(mood=kind)
    flow.output(a=flow.branch("{{ mood }}", cases))
    assert flow.run_sync(mood=value)["a"] == "a"


def test_cases_of_answers_and_comparisons() -> None:
    flow = made(score=int)
    flow.output(a=flow.branch(flow.model("small", "p", schema=Mood), {"goood": 1}))
    flow.output(b=flow.branch("{{ score > 3 }}", {"yes": 1}))
    flow.output(c=flow.branch(flow.ask("Publish?", bool), {"y": 1}))
    with pytest.raises(TypeMismatch) as caught:
        flow.check()
    found = [error.message for error in caught.value.defects]
    assert [message.partition(":")[0].rpartition(" ")[2] for message in found] == [
        "`goood`",
        "`yes`",
        "`y`",
    ]


def test_a_value_that_is_written_in_the_program_may_be_changed_later() -> None:
    flow = made()
    speed = flow.value("fast")
    flow.output(a=flow.branch(speed, {"fast": 1, "slow": 2}))
    assert flow.run_sync()["a"] == 1


@pytest.mark.parametrize(
    "prompt",
    [
        "Write {{ nonsense }}",
        r"Compute \frac{{a}}{{b}}",
        '{{"a": 1}} is JSON',
        "{# x #} y",
        "a {{ b",
    ],
)
def test_braces_that_are_text(prompt: str) -> None:
    flow = made(topic=str)
    flow.output(a=flow.model("small", prompt))
    with pytest.raises(BuildError) as caught:
        flow.check()
    assert "weft.literal(" in str(caught.value.hint)
    assert "small" not in str(caught.value.hint)
    written = made()
    written.output(a=written.model("small", weft.literal(prompt)))
    assert written.run_sync()["a"] == "words"


def test_braces_that_are_text_in_a_file() -> None:
    text = 'name: x\nnodes:\n  a: {ask: "Write {{ nonsense }}"}\noutputs: {a: "{{ a }}"}\n'
    with pytest.raises(BuildError, match="nonsense") as caught:
        weft.loads(text)
    assert "{% raw %}" in str(caught.value.hint)
    assert "weft.literal" not in str(caught.value.hint)


def test_an_item_by_a_number() -> None:
    flow = made(prices=dict[str, float], best=int)
    prices = flow.value("{{ prices }}")
    flow.output(price=prices[flow.value("{{ best }}")], first="{{ prices[1] }}")
    assert flow.run_sync(prices={"1": 2.5}, best=1).outputs == {"price": 2.5, "first": 2.5}


@pytest.mark.parametrize(
    ("write", "hint"),
    [
        (lambda f: f.value("{{ topic.titel }}"), "write {{ topic }} for all of it"),
        (lambda f: f.value("{{ hit.titel }}"), "did you mean 'title'?"),
        (lambda f: f.value("{{ hit.title.x }}"), "write {{ hit.title }} for all of it"),
        (lambda f: f.tool(search, limit=2), "add `topic=...`; given: limit"),
        (lambda f: f.call(search, limit=2), "add `topic=...`; given: limit"),
        (lambda f: f.tool(search, "x", limit="{{ hit }}"), "it takes integer"),
        (lambda f: f.model("big", "p"), "there are: small"),
        (lambda f: f.tool("fetch"), "declare it: weft.Flow(name, tools={...})"),
        (lambda f: f.value("{{ nothing_alike }}"), "there are: value_2, topic, hit"),
        (lambda f: f.join(f.value(1), mode="quorum"), "say how many: `k=2`"),
    ],
)
def test_remedies_are_python(write: Callable[[Any], object], hint: str) -> None:
    title = {"title": {"type": "string"}}
    shape = {"type": "object", "properties": title, "additionalProperties": False}
    flow = made(topic=str, hit=shape)
    flow.output(a=write(flow), b=flow.value("{{ topic }}{{ hit }}"))
    with pytest.raises(BuildError) as caught:
        flow.check()
    assert hint in str(caught.value.hint)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic takes typing.TypedDict there")
def test_the_typed_dict_of_python_3_11() -> None:
    class Topic(typing.TypedDict):
        topic: str

    with pytest.raises(BuildError, match="no JSON Schema") as caught:
        made().model("small", "p", schema=Topic)
    assert "from typing_extensions import TypedDict" in str(caught.value.hint)
