from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.serving.openai.endpoint_calls import ask, events, question
from tests.serving.openai.scripted import (
    VLLM,
    EndpointServer,
    Script,
    chunk,
    says,
    usage,
)
from weft.core.errors import ModelOutputError, ModelRequestError, ModelUnavailable
from weft.core.ports import ModelRequest, Sampling, TextDelta, ToolCallDelta
from weft.core.values import Completion, ToolCall, Usage
from weft.serving.openai import Price

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def test_text_tokens_and_logprobs_stream_together(endpoints: EndpointServer) -> None:
    script = Script(
        [
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": "a"}, token_ids=[1], logprobs={"content": [{"logprob": -0.1}]}),
            chunk({"content": ""}, token_ids=[2], logprobs={"content": [{"logprob": -0.2}]}),
            chunk(
                {"content": "bc"},
                token_ids=[3, 4],
                logprobs={"content": [{"logprob": -0.3}, {"logprob": -0.4}]},
            ),
            chunk(finish="stop"),
            usage(5, 4),
        ]
    )
    assert events(endpoints.add(script)) == [
        TextDelta("a", (1,), (-0.1,)),
        TextDelta("", (2,), (-0.2,)),
        TextDelta("bc", (3, 4), (-0.3, -0.4)),
        Completion(
            "abc",
            token_ids=(1, 2, 3, 4),
            logprobs=(-0.1, -0.2, -0.3, -0.4),
            usage=Usage(5, 4, requests=1),
            model="scripted",
        ),
    ]


def test_the_largest_logprobs_come_in_order_and_without_the_drawn_token_beyond_them(
    endpoints: EndpointServer,
) -> None:
    """Both endpoints of vLLM put the drawn token first, also where it is none of the largest."""
    tops = [{"token": "x", "logprob": value} for value in (-9.0, -0.5, -0.75)]
    content = [{"token": "x", "logprob": -9.0, "top_logprobs": tops}]
    chat = Script([chunk({"content": "a"}, "stop", token_ids=[1], logprobs={"content": content})])
    answer = ask(endpoints.add(chat), question(top_logprobs=2))
    assert (answer.logprobs, answer.top_logprobs) == ((-9.0,), ((-0.5, -0.75),))

    largest = [{"token_id:7": -9.0, "token_id:5": -0.5, "token_id:6": -0.75}, {"token_id:5": -0.25}]
    logprobs = {"token_logprobs": [-9.0, -0.25], "top_logprobs": largest}
    choice = {"index": 0, "text": "a", "token_ids": [7, 5], "finish_reason": "stop"}
    plain = Script([{"choices": [{**choice, "logprobs": logprobs}]}])
    answer = ask(endpoints.add(plain), ModelRequest(prompt_token_ids=(1,), top_logprobs=2))
    assert answer.top_logprobs == ((-0.5, -0.75), (-0.25,))


@pytest.mark.parametrize(
    ("finish", "told", "ids", "stop"),
    [
        ("stop", {"stop_reason": 7}, [5, 7], 7),
        ("stop", {"stop_reason": "END"}, [5, 6], "END"),
        ("stop", {"matched_stop": "END"}, [5], "END"),
        # The model's own end, which generation configs add to the stop tokens.
        ("stop", {"stop_reason": 2}, [5, 2], None),
        ("stop", {"stop_reason": None}, [5, 2], None),
        # vLLM looks at its own end first, and then gives no reason.
        ("stop", {"stop_reason": None}, [5, 7], 7),
        ("stop", {"stop_reason": {"a": 1}}, [5], None),
        ("length", {"stop_reason": None}, [5, 7], None),
    ],
)
def test_a_stop_is_told_where_it_is_one_of_the_request(
    endpoints: EndpointServer, finish: str, told: dict[str, Any], ids: list[int], stop: object
) -> None:
    endpoint = endpoints.add(Script([chunk({"content": "a"}, finish, token_ids=ids, **told)]))
    sampling = Sampling(stop=("END",), stop_token_ids=(7, 8))
    answer = ask(endpoint, question(sampling=sampling))
    assert (answer.stop, answer.finish_reason) == (stop, finish)


@pytest.mark.parametrize("cut", [1, 3, 64])
def test_any_split_of_the_bytes_gives_the_same_answer(endpoints: EndpointServer, cut: int) -> None:
    text = "Ünï 漢字 🎉 end"
    assert ask(endpoints.add(says(text, cut=cut))).text == text


def test_prompt_token_ids_go_through_the_completions_endpoint(endpoints: EndpointServer) -> None:
    choice = {"index": 0, "text": "a b", "token_ids": [7, 8], "finish_reason": "stop"}
    logprobs = {"token_logprobs": [-1.0, -2.0]}
    script = Script([{"choices": [{**choice, "logprobs": logprobs}]}, usage(3, 2)])
    endpoint = endpoints.add(script)
    answer = ask(endpoint, ModelRequest(prompt_token_ids=(1, 2, 3), logprobs=True))
    assert (answer.text, answer.token_ids, answer.logprobs) == ("a b", (7, 8), (-1.0, -2.0))
    assert endpoint.paths[-1] == "v1/completions"
    assert endpoint.requests[0]["prompt"] == [1, 2, 3]


def test_money_follows_the_price(endpoints: EndpointServer) -> None:
    script = Script([chunk({"content": "x"}, "stop"), usage(1000, 10, cached=400)])
    spent = ask(endpoints.add(script), price=Price(prompt=1.0, completion=10.0, cached=0.5)).usage
    assert replace(spent, money=0) == Usage(1000, 10, 400, 1)
    assert spent.money == pytest.approx(0.0009)
    assert ask(endpoints.add(script), price=Price(1.0, 10.0)).usage.money == pytest.approx(0.0011)


def test_a_server_that_counts_nothing_is_counted_by_its_token_ids(
    endpoints: EndpointServer,
) -> None:
    script = Script([chunk({"content": "x"}, "stop", token_ids=[1, 2])])
    assert ask(endpoints.add(script)).usage == Usage(0, 2, requests=1)


def test_the_last_of_several_counts_is_the_true_one(endpoints: EndpointServer) -> None:
    script = Script([chunk({"content": "x"}), usage(5, 1), chunk({"content": "y"}), usage(5, 2)])
    assert ask(endpoints.add(script)).usage == Usage(5, 2, requests=1)


def test_other_candidates_are_left_out(endpoints: EndpointServer) -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}]}
    script = Script([other, chunk({"content": "yes"}), chunk(finish="stop"), other])
    answer = ask(endpoints.add(script))
    assert (answer.text, answer.finish_reason) == ("yes", "stop")


def test_a_server_that_does_not_stream_is_understood(endpoints: EndpointServer) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "hello", "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    plain = json.dumps({"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 2}})
    *deltas, answer = events(endpoints.add(Script(plain=plain)))
    assert deltas == [TextDelta("hello"), ToolCallDelta(0, "{}", "a", "f")]
    assert isinstance(answer, Completion)
    assert answer.tool_calls == (ToolCall("a", "f", "{}"),)
    assert answer.usage == Usage(1, 2, requests=1)


def test_a_call_without_arguments_is_told_at_the_end(endpoints: EndpointServer) -> None:
    call = {"index": 0, "id": "a", "function": {"name": "now"}}
    script = Script([chunk({"tool_calls": [call]}), chunk(finish="tool_calls")])
    *deltas, answer = events(endpoints.add(script))
    assert deltas == [ToolCallDelta(0, "{}", "a", "now")]
    assert isinstance(answer, Completion)
    assert answer.tool_calls == (ToolCall("a", "now", "{}"),)


def test_no_done_is_needed_after_a_finish_reason(endpoints: EndpointServer) -> None:
    assert ask(endpoints.add(says("all of it", done=False))).text == "all of it"


def test_an_answer_of_which_nobody_says_that_it_is_complete_is_cut_off(
    endpoints: EndpointServer,
) -> None:
    answer = ask(endpoints.add(Script([chunk({"content": "x"})])))
    assert (answer.text, answer.finish_reason) == ("x", "length")
    call = {"index": 0, "id": "a", "function": {"name": "now", "arguments": "{}"}}
    called = ask(endpoints.add(Script([chunk({"tool_calls": [call]})])))
    assert (len(called.tool_calls), called.finish_reason) == (1, "tool_calls")


def test_an_unknown_finish_reason_is_complete_and_logged(
    endpoints: EndpointServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "weft"):
        assert ask(endpoints.add(says("x", finish="banana"))).finish_reason == "stop"
        ask(endpoints.add(says("x", finish="eos_token")))
        ask(endpoints.add(Script([chunk({"content": "x"})])))
    ends = [record.getMessage() for record in caplog.records if record.levelname == "INFO"]
    assert ends == [
        "scripted ended its answer for 'banana': it is complete",
        "scripted did not say why its answer ended: it is cut off",
    ]


@pytest.mark.parametrize(
    ("told", "understood"),
    [("stop", "stop"), ("length", "length"), ("eos", "stop"), ("", "length")],
)
def test_finish_reasons(endpoints: EndpointServer, told: str, understood: str) -> None:
    assert ask(endpoints.add(says("x", finish=told))).finish_reason == understood


@pytest.mark.parametrize("told", ["abort", "error"])
def test_an_answer_the_server_gave_up_is_retryable(endpoints: EndpointServer, told: str) -> None:
    with pytest.raises(ModelUnavailable, match=told) as raised:
        ask(endpoints.add(says("x", finish=told)))
    assert raised.value.retryable


def test_a_filtered_answer_is_not_retryable(endpoints: EndpointServer) -> None:
    with pytest.raises(ModelRequestError, match="filter") as raised:
        ask(endpoints.add(says("x", finish="content_filter")))
    assert not raised.value.retryable


def test_a_refusal_is_told(endpoints: EndpointServer) -> None:
    script = Script([chunk({"refusal": "I can"}), chunk({"refusal": "not."}, "stop")])
    with pytest.raises(ModelOutputError, match=r"I cannot\."):
        ask(endpoints.add(script))


def test_a_fitting_output_passes_and_a_tool_call_needs_no_text(endpoints: EndpointServer) -> None:
    assert ask(endpoints.add(says('{"n":1}')), question(schema=SCHEMA)).text == '{"n":1}'
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    script = Script([chunk({"tool_calls": [call]}, "tool_calls")])
    assert ask(endpoints.add(script), question(schema=SCHEMA)).tool_calls


def test_a_schema_never_fetches_anything(endpoints: EndpointServer) -> None:
    trap = endpoints.add(says("x"))
    schema = {"$ref": f"{trap.base_url}/models"}
    with pytest.raises(ModelRequestError, match="leads nowhere"):
        ask(endpoints.add(says('{"n":1}')), question(schema=schema))
    assert trap.paths == []


def test_constructor_fields_go_into_every_request(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("x"), model=VLLM)
    ask(endpoint, question(extra={"b": 2}), extra_body={"a": 1, "b": 1}, headers={"x-team": "red"})
    assert (endpoint.requests[0]["a"], endpoint.requests[0]["b"]) == (1, 2)
    assert endpoint.headers[-1]["x-team"] == "red"
    with pytest.raises(ModelRequestError, match="stream"):
        ask(endpoint, extra_body={"stream": False})
