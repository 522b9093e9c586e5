"""Every kind of node, in YAML and in Python: the same document, the same result."""
# ruff: noqa: RET504 - a node is called like the variable it is assigned to

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import weft
from tests.workflow.case import HEAD, WHOLE, loads, run
from tests.workflow.whole.tools import longest, search, shout
from weft.core.ports import ModelRequest
from weft.workflow import Handle

Build = Callable[[weft.Flow, Handle], Handle]


@dataclass(frozen=True)
class Case:
    yaml: str
    python: Build
    value: Any
    script: Callable[[ModelRequest], str] | None = None


def tool(flow: weft.Flow, topic: Handle) -> Handle:
    a = flow.tool(search, topic, limit=2)
    return a


def call(flow: weft.Flow, topic: Handle) -> Handle:
    a = flow.call(shout, f"{topic}", mark="?")
    return a


def model(flow: weft.Flow, topic: Handle) -> Handle:
    a = flow.model("small", f"About {topic}.", system="Be terse.", max_tokens=5)
    return a


def model_with_names(flow: weft.Flow, topic: Handle) -> Handle:
    a = flow.model("small", "{{ x }} and {{ topic }}", args={"x": f"the {topic}"})
    return a


def typed_model(flow: weft.Flow, topic: Handle) -> Handle:
    b = flow.model("small", "Score it.", schema={"type": "object", "required": ["score"]})
    a = flow.value({"twice": b.score * 2, "high": b["score"] > 3})
    return a


def samples(flow: weft.Flow, topic: Handle) -> Handle:
    a = flow.model("small", "x", samples=3, seed=5)
    return a


def map_of_one(flow: weft.Flow, topic: Handle) -> Handle:
    hits = flow.tool(search, topic)
    a = flow.map(hits, lambda hit: flow.model("small", f"{hit.text}"), width=2)
    return a


def map_of_many(flow: weft.Flow, topic: Handle) -> Handle:
    style = flow.value("loud")

    def body(hit: Handle, index: Handle) -> object:
        text = flow.value(f"{index}: {hit.text}")
        said = flow.call(shout, text)
        return {"said": said, "style": style}

    a = flow.map(flow_items(), body)
    return a


def flow_items() -> list[dict[str, str]]:
    return [{"text": "x"}, {"text": "y"}]


def map_of_map(flow: weft.Flow, topic: Handle) -> Handle:
    a = flow.map(
        [[1, 2], [3]], lambda row: flow.map(row, lambda n: flow.value(n + 1, name="up"), name="sum")
    )
    return a


def map_that_forgives(flow: weft.Flow, topic: Handle) -> Handle:
    a = flow.map([1, 0], lambda n: flow.value(1 / n), mode="best_effort", otherwise="none")
    return a


def reduce(flow: weft.Flow, topic: Handle) -> Handle:
    a = flow.reduce(longest, ["x", f"{topic}", "yy"], least=2)
    return a


def join_all(flow: weft.Flow, topic: Handle) -> Handle:
    b = flow.value(1)
    c = flow.value(2)
    a = flow.join(c, b)
    return a


def join_first_valid(flow: weft.Flow, topic: Handle) -> Handle:
    b = flow.value("x")
    c = flow.value("long enough")
    a = flow.join(b, c, mode="first_valid", valid=lambda value: value != "x")
    return a


def join_quorum_when(flow: weft.Flow, topic: Handle) -> Handle:
    b = flow.value(1)
    c = flow.value("{{ 1 / ('' | length) }}", on_failure="skip")
    d = flow.value(3)
    a = flow.join(b, c, d, mode="quorum", k=2, when=b == 1)
    return a


def branch(flow: weft.Flow, topic: Handle) -> Handle:
    a = flow.branch(
        topic == "rivers", {True: lambda: flow.call(shout, topic), False: "quiet {{ topic }}"}
    )
    return a


def branch_of_many(flow: weft.Flow, topic: Handle) -> Handle:
    def water() -> object:
        wet = flow.value(f"wet {topic}")
        loud = flow.call(shout, wet)
        return loud

    a = flow.branch(topic, {"hills": "dry", "default": water})
    return a


def loop(flow: weft.Flow, topic: Handle) -> Handle:
    a = flow.loop(1, lambda n: flow.value(n * 2), until=lambda n: n > 10, max=9)
    return a


def loop_of_many(flow: weft.Flow, topic: Handle) -> Handle:
    def body(text: Handle, iteration: Handle) -> Handle:
        longer = flow.value(f"{text}{iteration}")
        loud = flow.call(shout, longer, mark="")
        return loud

    a = flow.loop(topic, body, until="{{ iteration == 2 }}", max=2)
    return a


def workflow(flow: weft.Flow, topic: Handle) -> Handle:
    b = flow.workflow("./part.yaml", question=topic)
    a = flow.value(f"{b.answer}!")
    return a


def value(flow: weft.Flow, topic: Handle) -> Handle:
    a = flow.value({"t": topic, "n": [1, f"{topic}s"]}, when=~(topic == "x"), default=0)
    return a


def policies(flow: weft.Flow, topic: Handle) -> Handle:
    plain = flow.value("plain")
    b = flow.value(1)
    a = flow.value(
        "{{ 1 / ('' | length) }}",
        fallback=plain,
        after=b,
        retry=2,
        timeout="30s",
        cache=True,
        budget=weft.Budget(tokens=5),
        description="x",
        weight=2,
    )
    return a


CASES: dict[str, Case] = {
    "tool": Case(
        '  a: {tool: search, with: {query: "{{ topic }}", limit: 2}}',
        tool,
        [{"text": "rivers 0"}, {"text": "rivers 1"}],
    ),
    "call": Case(
        '  a: {call: "./tools.py:shout", with: {text: "{{ topic }}", mark: "?"}}', call, "RIVERS?"
    ),
    "model": Case(
        '  a: {model: small, prompt: "About {{ topic }}.", system: Be terse., max_tokens: 5}',
        model,
        "<About rivers.>",
    ),
    "model with names": Case(
        '  a: {model: small, prompt: "{{ x }} and {{ topic }}", with: {x: "the {{ topic }}"}}',
        model_with_names,
        "<the rivers and rivers>",
    ),
    "typed model": Case(
        """\
  b: {model: small, prompt: Score it., schema: {type: object, required: [score]}}
  a: {value: {twice: "{{ b.score * 2 }}", high: "{{ b.score > 3 }}"}}""",
        typed_model,
        {"twice": 8, "high": True},
        lambda request: '{"score": 4}',
    ),
    "samples": Case(
        "  a: {model: small, prompt: x, samples: 3, seed: 5}",
        samples,
        ["5", "6", "7"],
        lambda request: str(request.sampling.seed),
    ),
    "map": Case(
        """\
  hits: {tool: search, with: {query: "{{ topic }}"}}
  a: {map: "{{ hits }}", as: hit, do: {model: small, prompt: "{{ hit.text }}"}, width: 2}""",
        map_of_one,
        ["<rivers 0>", "<rivers 1>", "<rivers 2>"],
    ),
    "map of many": Case(
        """\
  style: {value: loud}
  a:
    map: [{text: x}, {text: y}]
    as: hit
    do:
      nodes:
        text: {value: "{{ index }}: {{ hit.text }}"}
        said: {call: "./tools.py:shout", with: {text: "{{ text }}"}}
      result: {said: "{{ said }}", style: "{{ style }}"}""",
        map_of_many,
        [{"said": "0: X!", "style": "loud"}, {"said": "1: Y!", "style": "loud"}],
    ),
    "map of map": Case(
        """\
  a: {map: [[1, 2], [3]], as: row, do: {map: "{{ row }}", as: n, do: {value: "{{ n + 1 }}"}}}""",
        map_of_map,
        [[2, 3], [4]],
    ),
    "map that forgives": Case(
        """\
  a: {map: [1, 0], as: n, do: {value: "{{ 1 / n }}"}, mode: best_effort, otherwise: none}""",
        map_that_forgives,
        [1.0, "none"],
    ),
    "reduce": Case(
        """\
  a: {reduce: "./tools.py:longest", over: [x, "{{ topic }}", yy], with: {least: 2}}""",
        reduce,
        "rivers",
    ),
    "join": Case("  b: {value: 1}\n  c: {value: 2}\n  a: {join: [c, b]}", join_all, [2, 1]),
    "join of the first valid": Case(
        """\
  b: {value: x}
  c: {value: long enough}
  a: {join: [b, c], mode: first_valid, valid: "{{ value != 'x' }}"}""",
        join_first_valid,
        "long enough",
    ),
    "join of a quorum": Case(
        """\
  b: {value: 1}
  c: {value: "{{ 1 / ('' | length) }}", on_failure: skip}
  d: {value: 3}
  a: {join: [b, c, d], mode: quorum, k: 2, when: "{{ b == 1 }}"}""",
        join_quorum_when,
        [1, 3],
    ),
    "branch": Case(
        """\
  a:
    branch: "{{ topic == 'rivers' }}"
    cases:
      true: {call: "./tools.py:shout", with: {text: "{{ topic }}"}}
      false: {value: "quiet {{ topic }}"}""",
        branch,
        "RIVERS!",
    ),
    "branch of many": Case(
        """\
  a:
    branch: "{{ topic }}"
    cases:
      hills: {value: dry}
      default:
        nodes:
          wet: {value: "wet {{ topic }}"}
          loud: {call: "./tools.py:shout", with: {text: "{{ wet }}"}}
        result: "{{ loud }}\"""",
        branch_of_many,
        "WET RIVERS!",
    ),
    "loop": Case(
        '  a: {loop: {value: "{{ n * 2 }}"}, as: n, start: 1, until: "{{ n > 10 }}", max: 9}',
        loop,
        16,
    ),
    "loop of many": Case(
        """\
  a:
    loop:
      nodes:
        longer: {value: "{{ text }}{{ iteration }}"}
        loud: {call: "./tools.py:shout", with: {text: "{{ longer }}", mark: ""}}
      result: "{{ loud }}"
    as: text
    start: "{{ topic }}"
    until: "{{ iteration == 2 }}"
    max: 2""",
        loop_of_many,
        "RIVERS12",
    ),
    "workflow": Case(
        """\
  b: {workflow: ./part.yaml, with: {question: "{{ topic }}"}}
  a: {value: "{{ b.answer }}!"}""",
        workflow,
        "About rivers!",
    ),
    "value": Case(
        """\
  a:
    value: {t: "{{ topic }}", n: [1, "{{ topic }}s"]}
    when: "{{ not (topic == 'x') }}"
    default: 0""",
        value,
        {"t": "rivers", "n": [1, "riverss"]},
    ),
    "policies": Case(
        """\
  plain: {value: plain}
  b: {value: 1}
  a:
    value: "{{ 1 / ('' | length) }}"
    fallback: plain
    after: b
    retry: 2
    timeout: 30s
    cache: true
    budget: {tokens: 5}
    description: x
    weight: 2""",
        policies,
        "plain",
    ),
}


def in_python(case: Case) -> weft.Flow:
    flow = weft.Flow("case", models={"small": "local:smollm2-135m-instruct"}, folder=WHOLE)
    topic = flow.input("topic", str, default="rivers")
    flow.output(a=case.python(flow, topic))
    return flow


@pytest.mark.parametrize("name", CASES)
def test_from_yaml(name: str) -> None:
    case = CASES[name]
    flow = loads(case.yaml)
    result = run(flow, case.script) if case.script else run(flow)
    assert result.outputs == {"a": case.value}, result
    assert result.ok


@pytest.mark.parametrize("name", CASES)
def test_from_python(name: str) -> None:
    case = CASES[name]
    flow = in_python(case)
    result = run(flow, case.script) if case.script else run(flow)
    assert result.outputs == {"a": case.value}, result


@pytest.mark.parametrize("name", CASES)
def test_both_are_the_same_document(name: str) -> None:
    from_yaml, from_python = loads(CASES[name].yaml), in_python(CASES[name])
    assert from_python.nodes == from_yaml.nodes
    text = from_python.to_yaml()
    again = weft.loads(text, str(WHOLE / "case.yaml"))
    assert again.document == from_python.document
    assert again.to_yaml() == text


def test_a_person_is_asked() -> None:
    flow = loads('  a: {ask: "Is {{ topic }} right?", schema: boolean}', head=HEAD)
    started = weft.Flow("case", folder=WHOLE)
    topic = started.input("topic", str, default="rivers")
    a = started.ask(f"Is {topic} right?", bool)
    started.output(a=a)
    assert started.nodes == flow.nodes
