from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.core.errors import (
    BudgetExceeded,
    BuildError,
    CapabilityError,
    ContextLengthExceeded,
    InputError,
    ModelOutputError,
    ModelOverloaded,
    ModelRequestError,
    ModelTimeout,
    ModelUnavailable,
    NodeFailed,
    WeftError,
)
from weft.core.ports import (
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    Sampling,
    TextDelta,
    complete,
)
from weft.core.values import Completion, Message, ToolSpec
from weft.testing import FakeClock, FakeModel, Reply
from weft.workflow import Flow, FlowResult
from weft.workflow.apps.flow_model import FlowModel

TALK = """
name: talk
inputs: {question: string, tone: {type: string, default: kind}}
models: {m: local:x}
nodes:
  draft: {model: m, prompt: "{{ tone }}: {{ question }}", retry: {attempts: 3, delay: 1ms}EXTRA}
outputs: {answer: "{{ draft }}", length: "{{ draft | length }}"}
"""
LISTS = """
name: lists
inputs: {messages: array, n: {type: integer, default: 2}}
nodes:
  count: {value: {turns: "{{ messages | length }}", first: "{{ messages[0] }}", n: "{{ n }}"}}
outputs: {all: "{{ count }}"}
"""


def user(*texts: str, **fields: Any) -> ModelRequest:
    return ModelRequest(tuple(Message("user", text) for text in texts), **fields)


def talk(extra: str = "") -> Flow:
    return weft.loads(TALK.replace("EXTRA", extra))


async def events(model: FlowModel, request: ModelRequest) -> list[ModelEvent]:
    async with aclosing(model.generate(request)) as stream:
        return [event async for event in stream]


def ask(
    flow: Flow, request: ModelRequest, *replies: Reply | str, progress: bool = False
) -> list[ModelEvent]:
    models = {"m": FakeModel(replies)} if replies else {}
    return FakeClock().run(events(FlowModel(flow, models, progress=progress), request))


def answer(flow: Flow, request: ModelRequest, *replies: Reply | str) -> Completion:
    last = ask(flow, request, *replies)[-1]
    assert isinstance(last, Completion)
    return last


def test_the_answer_is_streamed_as_the_node_writes_it() -> None:
    *deltas, last = ask(talk(), user("first", "second"), Reply("one two three", per_token_s=1))
    assert deltas == [TextDelta("one"), TextDelta(" two"), TextDelta(" three")]
    assert isinstance(last, Completion)
    assert (last.text, last.finish_reason, last.model) == ("one two three", "stop", "talk")
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (2, 3)


def test_the_chat_fills_the_inputs() -> None:
    fake = FakeModel(["x"])
    model = FlowModel(talk(), {"m": fake})

    async def main() -> None:
        turns = (Message("user", "old"), Message("assistant", "hm"), Message("user", "new"))
        await complete(model, ModelRequest(turns))
        await complete(model, user("hi", extra={"inputs": {"tone": "stern"}}))
        await complete(model, user("hi", extra={"inputs": {"question": "other"}}))

    asyncio.run(main())
    said = [request.messages[0].content for request in fake.requests]
    assert said == ["kind: new", "stern: hi", "kind: other"]


def test_a_whole_conversation_and_a_typed_answer() -> None:
    turns = (Message("system", "s"), Message("user", "u"), Message("tool", "4", (), "c1"))
    request = ModelRequest(turns, extra={"inputs": {"n": 3}})
    found = json.loads(answer(weft.loads(LISTS), request).text)
    assert found == {"turns": 3, "first": {"role": "system", "content": "s"}, "n": 3}


@pytest.mark.parametrize(
    ("inputs", "conversation", "question"),
    [
        ("{messages: array, prompt: string}", "messages", "prompt"),
        ("{prompt: string, question: string}", None, "prompt"),
        ("{messages: string}", None, "messages"),
        ("{topic: string, n: {type: integer, default: 1}}", None, "topic"),
        ("{topic: string, style: string}", None, None),
        ("{topic: {type: string, default: x}}", None, None),
        ("{question: {type: string, default: x}}", None, "question"),
        ("{question: integer, n: integer}", None, None),
    ],
)
def test_which_inputs_a_chat_fills(
    inputs: str, conversation: str | None, question: str | None
) -> None:
    flow = weft.loads(
        f"name: t\ninputs: {inputs}\nnodes: {{a: {{value: 1}}}}\noutputs: {{a: '{{{{ a }}}}'}}"
    )
    found = FlowModel(flow, {}).inputs
    assert (found.conversation, found.question) == (conversation, question)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (user("x", extra={"inputs": {"no": 1}}), "no input `no`"),
        (user("x", extra={"inputs": {"tone": 1}}), "`tone`"),
        (user("x", extra={"inputs": [1]}), "not an object"),
        (ModelRequest((Message("system", "x"),)), "nobody asks"),
    ],
)
def test_wrong_inputs_are_input_errors(request_: ModelRequest, words: str) -> None:
    with pytest.raises(InputError, match=words):
        ask(talk(), request_, "never")


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": (ToolSpec("t", "", {}),)},
        {"schema": {"type": "object"}},
        {"logprobs": True},
    ],
)
def test_what_a_workflow_cannot_do_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(CapabilityError, match="talk is a workflow"):
        ask(talk(), user("x", **fields), "never")
    with pytest.raises(CapabilityError):
        ask(talk(), ModelRequest(prompt_token_ids=(1,)), "never")


def test_a_repetition_that_agrees_is_said_once() -> None:
    replies = [Reply("one two three", break_after_tokens=2), "one two three"]
    *deltas, last = ask(talk(), user("x"), *replies)
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == [
        "one",
        " two",
        " three",
    ]
    assert isinstance(last, Completion)


def test_a_repetition_that_differs_ends_in_an_error_unless_nothing_was_said() -> None:
    replies = [Reply("one two three", break_after_tokens=2), "four five"]
    with pytest.raises(ModelUnavailable, match="another one") as raised:
        ask(talk(), user("x"), *replies)
    assert raised.value.node == "draft"
    whole = answer(talk(), user("x", extra={"stream": False}), *replies)
    assert whole.text == "four five"


def test_a_fallback_goes_on() -> None:
    flow = weft.loads(
        TALK.replace("EXTRA", ", fallback: spare").replace(
            "outputs:", "  spare: {model: m, prompt: again}\noutputs:"
        )
    )
    refused = Reply(error=ModelRequestError("no"))
    assert answer(flow, user("x"), refused, "from the spare").text == "from the spare"


def test_progress_is_told_as_reasoning() -> None:
    *deltas, last = ask(talk(), user("x"), "hi", progress=True)
    assert deltas == [TextDelta("hi"), ReasoningDelta("draft finished\n")]
    assert isinstance(last, Completion)
    assert last.reasoning == "draft finished\n"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ModelOverloaded("busy"), ModelOverloaded),
        (ModelUnavailable("gone"), ModelUnavailable),
        (ModelOutputError("odd"), ModelOutputError),
        (ModelTimeout("late"), ModelTimeout),
        (ModelRequestError("the key of 10.0.0.1 is wrong"), NodeFailed),
    ],
)
def test_failures_keep_their_kind_and_name_the_node(
    error: WeftError, kind: type[WeftError]
) -> None:
    with pytest.raises(kind) as raised:
        ask(talk(), user("x"), Reply(error=error))
    assert raised.value.node == "draft"


def test_the_node_where_it_began_is_named() -> None:
    flow = weft.loads("""
name: t
inputs: {question: string}
nodes:
  first: {value: "{{ 1 / (question | length - 1) }}"}
  second: {value: "{{ first }}"}
outputs: {answer: "{{ second }}"}
""")
    with pytest.raises(NodeFailed) as raised:
        ask(flow, user("x"))
    assert raised.value.node == "first"


def test_a_run_that_fails_beside_its_answer_fails() -> None:
    text = (
        TALK.replace("EXTRA", "")
        .replace("outputs: {", 'outputs: {other: "{{ other }}", ')
        .replace("outputs:", '  other: {value: "{{ 1 / (question | length - 1) }}"}\noutputs:')
    )
    with pytest.raises(NodeFailed) as raised:
        ask(weft.loads(text), user("x"), "fine")
    assert raised.value.node == "other"
    assert answer(weft.loads(text), user("longer"), "fine").text == "fine"


def test_time_and_budgets_run_out() -> None:
    slow = Reply("late", first_token_s=50)
    with pytest.raises(ModelTimeout):
        ask(talk(), user("x", timeout_s=5), slow)
    with pytest.raises(ModelTimeout):
        ask(talk(", timeout: 5s"), user("x"), slow)
    limited = weft.loads(TALK.replace("EXTRA", "").replace("nodes:", "run: {deadline: 5s}\nnodes:"))
    with pytest.raises(ModelTimeout):
        ask(limited, user("x", timeout_s=500), slow)
    assert answer(talk(), user("x", timeout_s=500), slow).text == "late"
    poor = TALK.replace("EXTRA", "").replace("nodes:", "run: {budget: {tokens: 0}}\nnodes:")
    with pytest.raises(BudgetExceeded):
        ask(weft.loads(poor), user("x"), "never")


def test_a_seed_reaches_the_samples() -> None:
    flow = weft.loads(TALK.replace("EXTRA", ", samples: 2").replace("| length", "| first"))
    fake = FakeModel(["x"])
    sampling = Sampling(seed=-3)
    FakeClock().run(complete(FlowModel(flow, {"m": fake}), user("x", sampling=sampling)))
    assert [request.sampling.seed for request in fake.requests] == [2**31 - 3, 2**31 - 2]


def test_hanging_up_cancels_the_run() -> None:
    fake = FakeModel([Reply("one two", per_token_s=60)])

    async def main() -> None:
        model = FlowModel(talk(), {"m": fake})
        stream = model.generate(user("x"))
        await anext(stream)
        assert fake.running == 1
        await stream.aclose()
        assert (fake.running, fake.cancelled) == (0, 1)
        task = asyncio.create_task(complete(model, user("x")))
        while not fake.running:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert (fake.running, fake.cancelled) == (0, 2)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_runs_are_apart() -> None:
    fake = FakeModel(lambda request: Reply(request.messages[-1].content, per_token_s=0.1))

    async def main() -> list[str]:
        model = FlowModel(talk(), {"m": fake})
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(complete(model, user(f"q{i % 8}"))) for i in range(64)]
        return [task.result().text for task in tasks]

    assert FakeClock().run(main()) == [f"kind: q{i % 8}" for i in range(64)]
    programs = {request.program.id for request in fake.requests if request.program is not None}
    assert len(programs) == 64


def test_a_workflow_that_asks_a_person_is_refused(tmp_path: Path) -> None:
    asking = """
name: asking
inputs: {question: string}
nodes:
  each: {map: ["a"], do: {ask: "Sure?"}}
outputs: {answer: "{{ each }}"}
"""
    (tmp_path / "asking.yaml").write_text(asking)
    with pytest.raises(BuildError, match=r"asking asks a person.*make it an input") as raised:
        FlowModel(weft.load(tmp_path / "asking.yaml"), {})
    assert "asking.yaml:5" in str(raised.value)
    outer = """
name: outer
inputs: {question: string}
nodes:
  part: {workflow: asking.yaml, with: {question: "{{ question }}"}}
outputs: {answer: "{{ part.answer }}"}
"""
    (tmp_path / "outer.yaml").write_text(outer)
    with pytest.raises(BuildError, match="outer asks a person"):
        FlowModel(weft.load(tmp_path / "outer.yaml"), {})


def test_several_outputs_come_together() -> None:
    flow = weft.loads(TALK.replace("EXTRA", "").replace("answer:", "words:"))
    assert json.loads(answer(flow, user("x"), "hi").text) == {"words": "hi", "length": 2}


def test_what_it_says_of_itself() -> None:
    async def main() -> None:
        model = FlowModel(talk(), {})
        assert model.model == "talk"
        assert model.streams
        assert not (await model.capabilities()).tools
        await model.aclose()
        await model.aclose()
        with pytest.raises(ModelUnavailable, match="closed"):
            await complete(model, user("x"))

    asyncio.run(main())
    assert not FlowModel(weft.loads(LISTS), {}).streams


def test_results_of_the_flow_itself_are_untouched() -> None:
    result = talk().run_sync(question="x", models={"m": FakeModel(["hi"])})
    assert isinstance(result, FlowResult)
    assert result.outputs == {"answer": "hi", "length": 2}


INSIDE = {
    "plain": "",
    "samples": ", samples: 2",
    "agent": ", agent: {loop: react}, tools: []",
    "think": ", think: sample",
}


@pytest.mark.parametrize("kind", INSIDE)
def test_a_prompt_that_is_too_long_is_the_callers_fault_wherever_it_is_said(kind: str) -> None:
    text = f"""
name: t
inputs: {{question: string}}
models: {{m: local:x}}
nodes:
  a: {{model: m, prompt: "{{{{ question }}}}"{INSIDE[kind]}}}
  ab: {{value: "{{{{ a }}}}"}}
outputs: {{answer: "{{{{ ab }}}}"}}
"""
    error = ContextLengthExceeded("the prompt has 9 tokens; it must fit into 8", hint="shorten")
    with pytest.raises(ContextLengthExceeded, match="9 tokens") as raised:
        ask(weft.loads(text), user("x"), Reply(error=error))
    assert str(raised.value.node).startswith("a")
