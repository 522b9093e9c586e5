"""Writing workflows in Python: names, handles, options, errors."""

from __future__ import annotations

import asyncio
import copy
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import weft
from tests.workflow.case import WHOLE, echo, run
from tests.workflow.whole.tools import longest, search, shout
from weft.core.errors import (
    BuildError,
    DuplicateName,
    SourceError,
    TypeMismatch,
    UnknownReference,
)
from weft.testing import FakeModel
from weft.workflow import Expression, Handle, literal
from weft.workflow.document.spec.nodes import ModelNode


def flow(**values: Any) -> weft.Flow:
    return weft.Flow("case", models={"small": "local:tiny"}, folder=WHOLE, **values)


def names(made: weft.Flow) -> list[str]:
    made.output(out="{{ 1 + 1 }}{{ " + next(iter(made._level.nodes)) + " }}")
    return list(made.nodes)


# -- names -----------------------------------------------------------------------------------------


def test_nodes_are_called_like_the_variables_they_are_assigned_to() -> None:
    made = flow()
    first = made.value(1)
    pair = made.value(2), made.value(3)
    made.value(4)
    for _ in range(2):
        again = made.value(first)
    _hidden = made.value(5)
    made.value(6, name="named")
    found = [made.value(n) for n in (7,)]
    assert names(made) == [
        *("first", "value", "value_2", "value_3", "again", "again_2", "value_4", "named"),
        "value_5",
    ]
    assert [repr(handle) for handle in (*pair, again, *found)] == [
        *("<value>", "<value_2>", "<again_2>", "<value_5>"),
    ]


def test_defaults_for_names() -> None:
    made = flow()
    made.tool(search, "x")
    made.call(shout, "x")
    made.reduce(longest, ["x"])
    made.model("small", "x")
    made.map([1], lambda n: n)
    made.workflow("./part.yaml", question="x")
    made.ask("x?")
    assert names(made) == ["search", "shout", "longest", "small", "map", "part", "ask"]


def test_names_that_are_taken() -> None:
    made = flow()
    topic = made.input("topic", str)
    with pytest.raises(DuplicateName):
        made.input("topic")
    with pytest.raises(DuplicateName):
        made.value(1, name="topic")
    made.map([1], lambda topic: topic)  # a name of its own, as in Python
    made.output(a=topic)
    with pytest.raises(DuplicateName):
        made.output(a=topic)
    made.value(1, name="not a name")
    with pytest.raises(BuildError, match="not a name"):
        made.check()


# -- handles ---------------------------------------------------------------------------------------


def test_handles_are_expressions() -> None:
    made = flow()
    a = made.value({"x": 1}, name="a")
    b = made.value([2], name="b")
    assert str(a.x) == "{{ a.x }}"
    assert f"<{b[0]}>" == "<{{ b[0] }}>"
    assert str(a["x y"]["z"]) == "{{ a['x y'].z }}"
    cases = {
        "a.x > 3": a.x > 3,
        "a.x >= b[0]": a.x >= b[0],
        "a.x < 3": a.x < 3,
        "a.x <= 3": a.x <= 3,
        "a == 'it\\'s'": None,
        "a != none": a != None,  # noqa: E711 - an expression
        "(a.x > 3) and (not b)": (a.x > 3) & ~b,
        "a or true": a | True,
        "(1 + a.x) * 2": (1 + a.x) * 2,
        "10 - a.x": 10 - a.x,
        "a.x - 1.5": a.x - 1.5,
        "a.x / 2": a.x / 2,
        "1 / a.x": 1 / a.x,
        "a.x % 2": a.x % 2,
        "2 * a.x": 2 * a.x,
        "'x' + a.y": "x" + a.y,
        "a.y + 'x'": a.y + "x",
        "a == [1, 'b']": a == [1, "b"],
        "false and a": False & a,
        "true or a": True | a,
    }
    for source, expression in cases.items():
        if expression is not None:
            assert repr(expression) == f"<{source}>"


def test_expressions_compute_what_python_would() -> None:
    made = flow()
    n = made.input("n", int)
    found = made.value(
        {
            "sum": (n + 2) * 3 - 1,
            "both": (n > 1) & ~(n == 5),
            "text": "it's " + made.value("x", name="x") + '"',
            "rest": n % 3,
        }
    )
    made.output(out=found)
    assert run(made, tools=None, n=4).outputs == {
        "out": {"sum": 17, "both": True, "text": "it's x\"", "rest": 1}
    }


def test_a_handle_has_no_value_and_says_so() -> None:
    made = flow()
    a = made.value(1, name="a")
    with pytest.raises(TypeError, match=r"flow\.branch"):
        bool(a)
    with pytest.raises(TypeError, match=r"flow\.map"):
        list(a)
    with pytest.raises(TypeError, match="length"):
        len(a)
    with pytest.raises(TypeError, match="template"):
        assert 1 in a
    with pytest.raises(TypeError, match=r"flow\.branch"):
        assert a in [made.value(2), 1]
    with pytest.raises(TypeError, match="formatted"):
        f"{a:>3}"
    with pytest.raises(TypeError):
        a[1.5]  # type: ignore[index]
    with pytest.raises(TypeError, match="cannot hold"):
        a == {"x": 1}  # noqa: B015 - raises
    with pytest.raises(AttributeError):
        a._private  # noqa: B018 - raises
    assert not hasattr(a, "__wrapped__")
    assert isinstance(copy.copy(a), Expression)
    assert {a: 1}[a] == 1


def test_handles_of_another_flow_are_refused() -> None:
    other = flow().value(1)
    with pytest.raises(BuildError, match="another flow"):
        flow().value(other)


def test_values_that_no_document_holds() -> None:
    with pytest.raises(BuildError, match="set"):
        flow().value({1, 2})


def test_texts_are_templates_unless_they_are_literal() -> None:
    made = flow()
    topic = made.input("topic", str)
    b = made.value(["{{ topic }}", literal("{{ topic }}"), literal("plain"), literal("{% it's %}")])
    made.output(b=b, t=topic)
    assert run(made, tools=None, topic="x").outputs["b"] == [
        *("x", "{{ topic }}", "plain", "{% it's %}")
    ]


# -- calls -----------------------------------------------------------------------------------------


def test_tools_are_declared_once() -> None:
    made = flow()
    first = made.tool(search, "x", limit=2)
    made.tool(search, query=first)
    made.model("small", "x", tools=[search, "search"])
    made.tool("search", query="y")
    names(made)
    assert list(made.document.tools) == ["search"]
    assert made.document.tools["search"].use == "./tools.py:search"


def test_two_tools_of_one_name() -> None:
    def make(found: str) -> Any:
        @weft.tool
        def look(query: str) -> str:
            return found + query

        return look

    made = flow()
    made.output(a=made.tool(make("a"), "1"), b=made.tool(make("b"), "2"))
    assert list(made.document.tools) == ["look", "look_2"]
    assert made.run_sync().outputs == {"a": "a1", "b": "b2"}


def test_a_typed_function_is_a_tool_too() -> None:
    def double(n: int) -> int:
        return 2 * n

    made = flow()
    made.output(out=made.tool(double, 4))
    assert made.run_sync().outputs == {"out": 8}
    with pytest.raises(BuildError, match=r"@weft\.tool"):
        made.to_yaml()
    wrong = flow()
    wrong.output(out=wrong.tool(double, "four"))
    with pytest.raises(TypeMismatch, match="integer"):
        wrong.check()


def test_lambdas_and_closures_are_functions() -> None:
    made = flow()
    b = made.call(lambda x: x + 1, 1)
    c = made.reduce(lambda xs: sum(xs), [b, 3])

    async def later(x: int) -> int:
        return x * 10

    made.output(out=made.call(later, x=c))
    assert made.run_sync().outputs == {"out": 50}


def test_arguments_with_the_names_of_options() -> None:
    def wait(timeout: int, name: str) -> str:
        return f"{name}{timeout}"

    made = flow()
    made.output(out=made.call(wait, args={"timeout": 3, "name": "n"}, timeout="5s", name="x"))
    assert made.run_sync().outputs == {"out": "n3"}
    assert made.nodes["x"].timeout == 5.0


def test_arguments_by_position_are_bound() -> None:
    with pytest.raises(BuildError, match="too many"):
        flow().tool(search, 1, 2, 3)
    with pytest.raises(BuildError, match="by name"):
        flow().tool("search", 1)


def test_python_types_as_schemas() -> None:
    class Note(BaseModel):
        title: str
        score: Literal[1, 2, 3] = 1

    @dataclass
    class Plain:
        items: list[int]

    made = flow()
    for kind in (Note, Plain, list[str], bool, ["string"], {"type": "object"}, str | None):
        made.model("small", "x", schema=kind)
    names(made)
    schemas = [step.output_schema for step in made.nodes.values()]  # type: ignore[union-attr]
    assert schemas[0]["properties"]["score"]["enum"] == [1, 2, 3]
    assert schemas[1]["properties"]["items"] == {"type": "array", "items": {"type": "integer"}}
    assert schemas[2:6] == [
        {"type": "array", "items": {"type": "string"}},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object"},
    ]
    assert "title" not in schemas[0]
    assert "title" in schemas[0]["properties"]
    with pytest.raises(BuildError, match="JSON Schema"):
        made.model("small", "x", schema=type(made))
    with pytest.raises(BuildError, match="True has no JSON Schema: ") as told:
        made.model("small", "x", schema=True)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 250


def test_inputs() -> None:
    made = flow()
    made.input("a", list[str], default=["x"], description="Some texts.")
    made.input("b")
    made.input("c", "integer", default=None)
    made.output(o="{{ b }}")
    made.value(1)
    with pytest.raises(BuildError, match="not of type"):
        made.check()
    fine = flow()
    fine.input("a", list[str], default=["x"], description="Some texts.")
    fine.value("{{ a }}", name="v")
    fine.output(o="{{ v }}")
    assert fine.inputs["a"].description == "Some texts."
    assert not fine.inputs["a"].required
    assert run(fine, tools=None).outputs == {"o": ["x"]}


# -- errors at the line that is wrong -------------------------------------------------------------


def test_a_node_that_is_wrong_raises_at_once() -> None:
    made = flow()
    with pytest.raises(BuildError, match="max_tokens") as caught:
        made.model("small", "x", max_tokens="many", name="a")
    assert caught.value.node == "a"
    with pytest.raises(BuildError, match="duration"):
        made.value(1, timeout="soon")
    with pytest.raises(BuildError, match="handle of a node"):
        made.value(1, fallback="plain")  # type: ignore[arg-type]
    with pytest.raises(BuildError, match="parameters"):
        made.map([1], lambda: 1)
    with pytest.raises(BuildError, match="parameters"):
        made.branch("x", {"x": lambda n: n})
    with pytest.raises(BuildError, match="expression"):
        made.loop(1, lambda n: n, until=lambda n: True, max=3)
    with pytest.raises(BuildError, match="function"):
        made.map([1], 3)  # type: ignore[arg-type]


def test_a_body_that_raises_leaves_the_flow_as_it_was() -> None:
    made = flow()

    def body(n: Handle) -> Handle:
        made.value(n)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        made.map([1], body)
    a = made.value(1)
    made.output(a=a)
    assert list(made.nodes) == ["a"]


def test_handles_of_a_body_do_not_leave_it() -> None:
    made = flow()
    kept: list[Handle] = []

    def body(n: Handle) -> Handle:
        inside = made.value(n, name="inside")
        last = made.value(inside, name="last")
        kept.append(inside)
        return last

    a = made.map([1], body)
    b = made.value(kept[0])
    made.output(a=a, b=b)
    with pytest.raises(BuildError, match="lives inside"):
        made.check()


# -- the whole -------------------------------------------------------------------------------------


def test_a_flow_inside_a_flow() -> None:
    inner = weft.Flow("inner", models={"small": "local:tiny"})
    text = inner.input("text", str)
    said = inner.model("small", f"Say {text}")
    inner.output(said=said)
    outer = flow()
    b = outer.map(["x", "y"], lambda t: outer.workflow(inner, text=t))
    outer.output(b=b)
    result = run(outer)
    assert result.outputs == {"b": [{"said": "<Say x>"}, {"said": "<Say y>"}]}
    assert "b[1]/said" in result.outcomes
    with pytest.raises(BuildError, match="only in Python"):
        outer.to_yaml()


def test_a_flow_from_a_file_goes_on_in_python() -> None:
    made = weft.load(WHOLE / "part.yaml")
    loud = made.call(shout, "{{ reply }}")
    made.output(loud=loud)
    assert made.run_sync(question="x").outputs == {"answer": "About x", "loud": "ABOUT X!"}
    again = weft.loads(made.to_yaml(), str(WHOLE / "x.yaml"))
    assert again.document == made.document
    made.value("{{ nowhere }}")
    with pytest.raises(SourceError, match="nowhere"):
        made.check()


def test_a_tool_of_a_loaded_flow_is_not_declared_again() -> None:
    made = weft.loads(
        "name: x\ntools: {search: './tools.py:search'}\nnodes: {a: {value: 1}}\n"
        "outputs: {o: '{{ a }}'}\n",
        str(WHOLE / "x.yaml"),
    )
    made.tool(search, "x")
    assert list(made.document.tools) == ["search"]


def test_clients_in_the_place_of_declarations() -> None:
    made = weft.Flow("x", models={"small": FakeModel(echo, model="mine")})
    a = made.model("small", "hi")
    made.output(a=a)
    assert made.run_sync().outputs == {"a": "<hi>"}
    with pytest.raises(BuildError, match="exists only in Python"):
        made.to_yaml()


def test_functions_that_no_file_can_name(tmp_path: Path) -> None:
    made = weft.Flow("x", folder=tmp_path)
    made.output(a=made.call(shout, "x", name="a"))
    with pytest.raises(BuildError, match="no file can name"):
        made.to_yaml()
    local = flow()
    local.output(a=local.call(lambda: 1, name="a"))
    with pytest.raises(BuildError, match="`lambda`"):
        local.to_yaml()
    elsewhere = weft.Flow("x", folder=tmp_path)
    elsewhere.output(a=elsewhere.tool(search, "x", name="a"))
    assert "tests.workflow.whole.tools:search" in elsewhere.to_yaml()


def test_limits_of_the_run() -> None:
    made = flow(
        deadline="2m",
        concurrency=3,
        max_nodes=50,
        limits={"small": 1, "big": {"requests_per_minute": 60}},
        budget=weft.Budget(seconds=9),
        seed=1,
    )
    names_of = made.value(1)
    made.output(o=names_of)
    said = made.document.run
    assert said.max_nodes == 50
    assert (said.deadline, said.concurrency, said.seed) == (120.0, 3, 1)
    assert said.limits["small"].slots == 1
    assert said.limits["big"].requests_per_minute == 60
    assert said.budget is not None
    assert said.budget.time == 9.0


def test_describing_a_flow() -> None:
    made = weft.Flow("x", description="One thing.")
    made.output(a=made.value(1, name="a"))
    assert (made.name, made.description) == ("x", "One thing.")
    assert weft.loads(made.to_yaml()).description == "One thing."


def test_sampling_of_a_model_is_written_as_in_a_file() -> None:
    made = flow()
    made.output(a=made.model("small", "hi", temperature=0.8, top_p=0.9, min_p=0.05, name="a"))
    node = made.document.nodes["a"]
    assert isinstance(node, ModelNode)
    assert (node.temperature, node.top_p, node.min_p) == (0.8, 0.9, 0.05)
    assert node.arguments == {}
    with pytest.raises(BuildError, match="min_p"):
        made.model("small", "hi", min_p=1.5)


def test_a_misspelt_option_of_a_model_is_no_name_of_its_prompt() -> None:
    made = flow()
    options: dict[str, Any] = {"temprature": 0}
    with pytest.raises(BuildError, match="no keyword `temprature`") as caught:
        made.model("small", "hi", **options)
    assert "did you mean `temperature`?" in str(caught.value.hint)
    made.output(a=made.model("small", "hi", args=options))
    with pytest.raises(UnknownReference, match="the prompt has no `temprature`"):
        made.check()
    other = flow()
    other.output(a=other.model("small", "hi", system="Be {{ tone }}.", args={"tone": "kind"}))
    other.check()


def test_a_budget_of_one_run_is_written_as_in_a_file() -> None:
    made = weft.Flow("x", models={"small": FakeModel(echo)})
    first = made.model("small", "hi")
    made.output(a=made.model("small", "{{ text }}", args={"text": first}))
    assert made.run_sync(budget={"tokens": 10_000}).status == "succeeded"
    assert made.run_sync(budget={"tokens": 1}).status != "succeeded"
    with pytest.raises(BuildError, match="tokns") as caught:
        made.run_sync(budget={"tokns": 100})
    assert caught.value.hint == "did you mean `tokens`?"


def test_a_run_that_waits_for_a_person_says_so(caplog: pytest.LogCaptureFixture) -> None:
    made = weft.Flow("x")
    made.output(sure=made.ask("Sure?", bool))

    async def main() -> str:
        waiting = asyncio.create_task(made.run(durability="none", questions="wait"))
        while not caplog.records:
            await asyncio.sleep(0)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        return caplog.text

    assert "Sure? (`FlowRun.answer`)" in asyncio.run(main())


def test_the_names_of_the_package_are_listed() -> None:
    assert set(weft.__all__) == set(dir(weft))
    assert all(getattr(weft, name) is not None for name in weft.__all__)
