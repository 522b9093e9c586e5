"""How an answer was drafted, read from what vLLM says; and which node asks, told to it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving.openai.endpoint_calls import ask, question
from tests.serving.openai.scripted import VLLM, EndpointServer, Script, chunk, usage
from weft.core.ports import Program
from weft.core.values import Speculated
from weft.serving.openai.answer import speculated
from weft.serving.openai.chunk import WireDrafting

METRICS = "# HELP vllm:num_requests_running\nvllm:num_requests_running 0.0\n"
DRAFTS = METRICS + 'vllm:spec_decode_num_drafts_total{engine="0"} 0.0\n'
COUNTS = {
    "num_spec_steps": 3,
    "num_draft_tokens": 9,
    "num_accepted_draft_tokens": 5,
    "per_step_drafted": [4, 4, 1],
    "per_step_accepted": [4, 0, 1],
}


def counted(metrics: object) -> Script:
    last = {**usage(5, 9), "metrics": metrics}
    return Script([chunk({"content": "a"}, "stop", token_ids=list(range(9))), last])


def test_an_answer_says_how_it_was_drafted(endpoints: EndpointServer) -> None:
    answer = ask(endpoints.add(counted({"speculative_decoding": COUNTS, "queue_time_ms": 1.0})))
    assert answer.speculation == Speculated(
        "speculative", 9, 5, 3, tested=(3, 1, 1, 1), held=(2, 1, 1, 1)
    )


@pytest.mark.parametrize(
    "metrics",
    [
        None,
        {},
        {"speculative_decoding": None},
        {"speculative_decoding": {"num_spec_steps": -1}},
        {"speculative_decoding": {"num_spec_steps": "many"}},
        {"speculative_decoding": {**COUNTS, "num_spec_steps": 0}},
        [],
        "none",
    ],
)
def test_counts_that_are_none_take_nothing_from_the_answer(
    endpoints: EndpointServer, metrics: object
) -> None:
    answer = ask(endpoints.add(counted(metrics)))
    assert (answer.text, answer.speculation) == ("a", None)


def test_passes_without_a_draft_wrote_a_token_each() -> None:
    told = speculated(WireDrafting.model_validate({**COUNTS, "per_step_drafted": None}), "weft", 20)
    assert told == Speculated("weft", 9, 5, 14)
    cut = speculated(WireDrafting.model_validate(COUNTS), "weft", 2)
    assert cut is not None
    assert cut.forwards == 3


@given(
    st.lists(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))),
    st.integers(0, 200),
)
def test_no_depth_holds_more_than_was_tested(steps: list[tuple[int, int]], tokens: int) -> None:
    wire = WireDrafting(
        num_spec_steps=len(steps),
        num_draft_tokens=sum(n for n, _ in steps),
        num_accepted_draft_tokens=sum(kept for _, kept in steps),
        per_step_drafted=[n for n, _ in steps],
        per_step_accepted=[kept for _, kept in steps],
    )
    told = speculated(wire, "weft", tokens)
    assert (told is None) == (not steps)
    if told is not None:
        assert sum(told.held) == told.accepted
        assert all(h <= t <= told.forwards for h, t in zip(told.held, told.tested, strict=True))


@pytest.mark.parametrize(
    ("page", "extra", "sent"),
    [
        (DRAFTS, {}, {"weft_node": "report/notes"}),
        (DRAFTS, {"vllm_xargs": {"a": 1}}, {"weft_node": "report/notes", "a": 1}),
        (DRAFTS, {"vllm_xargs": {"weft_node": "mine"}}, {"weft_node": "mine"}),
        (DRAFTS, {"vllm_xargs": "odd"}, "odd"),
        (METRICS, {}, None),
    ],
)
def test_a_server_that_drafts_is_told_which_node_asks(
    endpoints: EndpointServer, page: str, extra: dict[str, Any], sent: object
) -> None:
    endpoint = endpoints.add(counted(None), model=VLLM, metrics=Script(plain=page))
    ask(endpoint, question(program=Program("run", node="report/notes"), extra=extra))
    assert endpoint.requests[-1].get("vllm_xargs") == sent


def test_nobody_is_told_where_no_program_asks(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(counted(None), model=VLLM, metrics=Script(plain=DRAFTS))
    ask(endpoint, question())
    assert "vllm_xargs" not in endpoint.requests[-1]
