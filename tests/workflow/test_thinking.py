"""`think:` of model nodes, `use: think` models, and `weft.think`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.workflow import thread_strategy
from tests.workflow.case import HEAD, loads, run
from weft.core.errors import BuildError, CycleError, ModelUnavailable, ReasoningError, SourceError
from weft.core.events import Event, GraphGrew, NodeLogged, RunStarted
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest
from weft.engine.analysis.trace import Trace
from weft.testing import FakeClock, FakeModel, MemoryStore, Reply
from weft.workflow.runtime.options import AskSettings

NODE = '  a: {model: small, system: Be terse., prompt: "About {{ topic }}", think: %s}'


@pytest.fixture(autouse=True)
def _chorus() -> Iterator[None]:
    with thread_strategy.registered():
        yield


def test_a_node_thinks_in_threads_of_its_own() -> None:
    trace = Trace()
    asked: list[ModelRequest] = []

    def script(request: ModelRequest) -> str:
        asked.append(request)
        return "yes" if len(asked) % 3 else "no"

    flow = loads(NODE % "{strategy: chorus, width: 3, temperature: 0.2, max_tokens: 9}")
    result = run(flow, script, listeners=[trace])
    assert result.outputs == {"a": "yes"}
    assert [m.content for m in asked[0].messages] == ["Be terse.|calm", "About rivers"]
    assert {request.sampling.temperature for request in asked} == {0.2}
    assert {request.sampling.max_tokens for request in asked} == {9}
    assert len({request.sampling.seed for request in asked}) == 3
    kinds = [node.info.kind for node in trace.nodes.values()]
    assert kinds.count("thread") == 3
    assert kinds[0] == "think"
    assert kinds.count("model") == 3
    assert result.usage.requests == 3


def test_the_calls_take_the_slots_of_the_model_in_the_file() -> None:
    trace = Trace()
    flow = loads(NODE % "{strategy: chorus, width: 5}")
    clock = FakeClock()
    run(
        flow,
        lambda _: Reply("a b", per_token_s=1.0),
        clock=clock,
        listeners=[trace],
        limits={"small": 2},
    )
    assert trace.wall_s == 6.0  # five calls of two seconds, two at a time
    assert trace.limits["small"] == 2


def test_the_log_says_what_it_cost_and_why_it_ended() -> None:
    lines: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, NodeLogged):
            lines.append(event.text)

    run(loads(NODE % "{strategy: chorus, width: 2}"), lambda _: "a b c", listeners=[listen])
    assert lines == ["6 tokens in 3 threads, 3 one after another; 2 voices agree"]


def test_the_answer_is_typed_where_there_is_a_schema() -> None:
    flow = loads(
        '  a: {model: small, prompt: "{{ topic }}", think: chorus, schema: {type: object, '
        "properties: {n: {type: integer}}, required: [n]}}\n"
        '  b: {value: "{{ a.n + 1 }}"}',
        'b: "{{ b }}"',
    )
    assert run(flow, lambda _: json.dumps({"n": 4})).outputs == {"b": 5}
    result = run(flow, lambda _: "four")
    failure = result.outcomes[NodeId("a")].failure
    assert failure is not None
    assert "is not JSON" in failure.message


def test_a_thought_is_repeated_as_a_whole_with_other_seeds() -> None:
    seeds: list[int | None] = []

    def script(request: ModelRequest) -> str:
        seeds.append(request.sampling.seed)
        return "1" if len(seeds) > 2 else "one"

    node = (
        '  a: {model: small, prompt: "{{ topic }}", think: {strategy: chorus, width: 2}, '
        "schema: integer, retry: {attempts: 2, delay: 0}}"
    )
    assert run(loads(node), script).outputs == {"a": 1}
    assert len(set(seeds)) == 4


def test_documents_come_from_other_nodes() -> None:
    nodes = (
        "  found: {tool: search, with: {query: Rome, limit: 2}}\n"
        '  a: {model: small, prompt: "{{ topic }}", think: {strategy: chorus, width: 1, '
        'settings: {mood: cross}, documents: "{{ found }}"}}'
    )
    asked: list[str] = []

    def script(request: ModelRequest) -> str:
        asked.extend(message.content for message in request.messages)
        return "x"

    run(loads(nodes), script)
    assert asked == ["|cross", "rivers d1=Rome 0 d2=Rome 1"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{a: one, b: two}", "a=one b=two"),
        ("[one, two]", "d1=one d2=two"),
        ("[{name: x, text: one}, {text: two}]", "x=one d2=two"),
        ("{name: x, text: one}", "x=one"),
        ("one", "d1=one"),
    ],
)
def test_documents_in_the_forms_that_people_write(value: str, expected: str) -> None:
    think = f"{{strategy: chorus, width: 1, documents: {value}}}"
    result = run(loads(NODE % think))
    assert result.outputs["a"] == f"<About rivers {expected}>"


@pytest.mark.parametrize("value", ["3", "[3]", "[{name: x}]", "{a: {b: c}}"])
def test_what_is_no_document_is_said(value: str) -> None:
    result = run(loads(NODE % f"{{strategy: chorus, documents: {value}}}"))
    assert "InputError" in result.missing["a"]


def test_the_budget_of_the_node_bounds_the_thought() -> None:
    flow = loads(
        '  a: {model: small, prompt: "{{ topic }}", think: {strategy: chorus, width: 4}, '
        "budget: {tokens: 40}}"
    )
    asked: list[ModelRequest] = []

    def script(request: ModelRequest) -> str:
        asked.append(request)
        return "yes"

    run(flow, script)
    assert sum(request.sampling.max_tokens or 0 for request in asked) <= 40


def test_a_thought_that_fails_leaves_the_node_to_its_default() -> None:
    down = Reply("x", error=ModelUnavailable("gone"))
    flow = loads(
        '  a: {model: small, prompt: "{{ topic }}", think: {strategy: chorus, width: 2}, '
        "default: none}"
    )
    assert run(flow, lambda _: down).outputs == {"a": "none"}


def test_python_says_the_same_as_the_file() -> None:
    flow = weft.Flow("case", models={"small": "local:smollm2-135m-instruct"})
    topic = flow.input("topic", str)
    texts = flow.value(["one"])
    a = flow.model(
        "small",
        f"About {topic}",
        think={"strategy": "chorus", "width": 2, "documents": texts},
        retry=2,
    )
    b = flow.model("small", f"About {a}", think="chorus")
    flow.output(b=b)
    flow.check()
    again = weft.loads(flow.to_yaml())
    assert again.document == flow.document
    result = flow.run_sync(topic="x", models={"small": FakeModel(["y"])})
    assert result.outputs == {"b": "y"}
    with pytest.raises(BuildError, match="unknown key `widht`"):
        flow.model("small", "x", think={"strategy": "chorus", "widht": 3})


def test_a_setting_that_is_none_is_told_at_its_place() -> None:
    flow = loads(NODE % "{strategy: chorus, settings: {mod: x}}")
    with pytest.raises(SourceError, match="chorus has no setting 'mod'") as raised:
        flow.check()
    assert "mood" in (raised.value.hint or "")
    assert raised.value.column == 1 + (NODE % "{strategy: chorus, settings: {mod: x}}").index("x}}")


SCORED = """
name: scored
models: {small: local:smollm2-135m-instruct}
nodes:
  a:
    model: small
    prompt: "How long is a river?"
    think: {strategy: best-of, width: 3, settings: {scorer: "%s"}}
outputs: {a: "{{ a }}"}
"""
SCORES = "def longest(question, sample):\n    return float(len(sample.text))\n"


def test_functions_in_settings_are_those_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "scores.py").write_text(SCORES)
    (tmp_path / "flow.yaml").write_text(SCORED % "./scores.py:longest")
    flow = weft.load(tmp_path / "flow.yaml")
    flow.check()
    script = FakeModel(["Answer: 10", "well, Answer: 2000", "Answer: 3"])
    assert flow.run_sync(models={"small": script}).outputs == {"a": "2000"}
    for said, why in (("./scores.py:short", "no function 'short'"), ("./no.py:x", "no.py")):
        (tmp_path / "flow.yaml").write_text(SCORED % said)
        with pytest.raises(SourceError, match=why) as raised:
            weft.load(tmp_path / "flow.yaml").check()
        assert raised.value.line == 8
    (tmp_path / "flow.yaml").write_text(SCORED % "../scores.py:longest")
    with pytest.raises(SourceError, match="out of the workflow's folder"):
        weft.load(tmp_path / "flow.yaml").check()


def test_files_in_settings_stay_beside_the_file(tmp_path: Path) -> None:
    text = SCORED.replace("best-of", "mirage").replace("scorer", "graph")
    (tmp_path / "flow.yaml").write_text(text % "../../etc/passwd")
    with pytest.raises(SourceError, match="out of the workflow's folder") as raised:
        weft.load(tmp_path / "flow.yaml").check()
    assert raised.value.line == 8


def test_what_a_node_thinks_is_part_of_its_identity() -> None:
    clock = FakeClock()
    store = MemoryStore(clock)
    asked: list[str] = []

    def script(request: ModelRequest) -> str:
        asked.append(request.messages[-1].content)
        return "x"

    node = '  a: {model: small, prompt: "{{ topic }}", cache: true, think: {strategy: chorus, %s}}'
    for said, calls in (("width: 1", 1), ("width: 1", 1), ("width: 2", 3)):
        run(loads(node % said), script, clock=clock, store=store)
        assert len(asked) == calls


CAREFUL = HEAD.replace(
    "tools:",
    "  careful: {use: think, model: small, think: {strategy: chorus, width: 3}}\n"
    "  either: {use: route, among: {careful: {loss: 0.1}, small: {loss: 0.5}}}\ntools:",
)


@pytest.mark.parametrize("model", ["careful", "either"])
def test_a_model_that_thinks_is_a_model_for_every_node(model: str) -> None:
    asked: list[ModelRequest] = []

    def script(request: ModelRequest) -> str:
        asked.append(request)
        return "a b"

    flow = loads(f'  a: {{model: {model}, prompt: "{{{{ topic }}}}", seed: 4}}', head=CAREFUL)
    result = run(flow, script)
    assert result.outputs == {"a": "a b"}
    assert len(asked) == 3
    assert result.usage.completion_tokens == 6
    assert weft.loads(flow.to_yaml()).document == flow.document


def test_a_node_of_a_model_that_thinks_has_its_threads_and_slots() -> None:
    trace = Trace()
    flow = loads('  a: {model: careful, prompt: "{{ topic }}", schema: integer}', head=CAREFUL)
    clock = FakeClock()
    result = run(
        flow,
        lambda _: Reply("7", per_token_s=1.0),
        clock=clock,
        listeners=[trace],
        limits={"small": 1},
    )
    assert result.outputs == {"a": 7}
    assert trace.wall_s == 3.0  # three calls, one at a time
    assert [node.info.kind for node in trace.nodes.values()].count("thread") == 3


def test_what_a_model_that_thinks_cannot_do_is_the_failure_of_the_node() -> None:
    flow = loads('  a: {model: careful, prompt: "{{ topic }}", stop: [x]}', head=CAREFUL)
    assert "careful thinks: no `stop`" in run(flow).missing["a"]


def test_clients_of_a_program_think_like_declared_models() -> None:
    base = FakeModel(["x"])
    careful = {"use": "think", "model": "base", "think": {"strategy": "chorus", "width": 3}}
    flow = weft.Flow("case", models={"base": base, "careful": careful})
    flow.output(a=flow.model("careful", "why?"))
    flow.check()
    assert flow.run_sync().outputs == {"a": "x"}
    assert len(base.requests) == 3


def test_a_client_that_thinks_cannot_think_again() -> None:
    thinker = weft.ThoughtModel(FakeModel(["x"]), "chorus", name="deep")
    flow = weft.Flow("case", models={"m": thinker})
    flow.output(a=flow.model("m", "why?", think="chorus"))
    assert "`deep` thinks already" in flow.run_sync().missing["a"]
    with pytest.raises(CycleError, match="`deep` thinks already"):
        weft.ThoughtModel(thinker, "chorus")
    with pytest.raises(CycleError, match="`deep` thinks already"):
        weft.think_sync("why?", strategy="chorus", model=thinker)


def test_weft_think_is_one_call() -> None:
    started: list[Any] = []

    def listen(event: Event) -> None:
        if isinstance(event, (RunStarted, GraphGrew)):
            started.extend(node.kind for node in event.nodes)

    async def main() -> weft.Thought:
        return await weft.think(
            "why?",
            strategy="chorus",
            model=FakeModel(["because"]),
            options=weft.ThinkOptions(width=4),
            settings=AskSettings(listeners=[listen], clock=clock),
        )

    clock = FakeClock()
    thought = clock.run(main())
    assert thought.answer == "because"
    assert thought.counts.threads == 5
    assert started.count("thread") == 4
    assert started[0] == "think"


def test_weft_think_says_why_there_is_no_answer() -> None:
    down = FakeModel([Reply("x", error=ModelUnavailable("gone"))])
    clock = FakeClock()

    async def main() -> weft.Thought:
        return await weft.think(
            "why?", strategy="chorus", model=down, settings=AskSettings(clock=clock)
        )

    with pytest.raises(ReasoningError, match="nobody said anything"):
        clock.run(main())
    with pytest.raises(BuildError, match="there is no strategy 'choir'"):
        weft.think_sync("why?", strategy="choir", model=FakeModel(["x"]))
    with pytest.raises(BuildError, match="the question is empty"):
        weft.think_sync(" ", strategy="chorus", model=FakeModel(["x"]))


def test_a_question_may_hold_everything_itself() -> None:
    question = weft.Question("why?", "Be kind.", (weft.Document("a", "one"),))
    model = FakeModel(["x"])
    weft.think_sync(question, strategy="chorus", model=model, options=weft.ThinkOptions(width=1))
    said = [message.content for message in model.requests[0].messages]
    assert said == ["Be kind.|calm", "why? a=one"]
