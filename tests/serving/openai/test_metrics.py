from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving.openai.scripted import Endpoint, EndpointServer, Script, says
from weft.core.errors import CapabilityError, ModelUnavailable
from weft.serving.openai import OpenAIModel, ServerMetrics
from weft.serving.openai.server import parse_metrics

PAGE = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 2.0
vllm:num_requests_running{engine="1",model_name="m"} 1.0
vllm:num_requests_waiting{engine="0",model_name="a \\"q\\" } b\\\\"} 4.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 4.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.5
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 200.0
vllm:prefix_cache_queries_created{engine="0",model_name="m"} 1.795262895346546e+09
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 50.0
vllm:external_prefix_cache_hits_total{engine="0",model_name="m"} 9.0
vllm:prompt_tokens_total{engine="0",model_name="m"} 1.1e+06
vllm:prompt_tokens_cached_total{engine="0",model_name="m"} 7.0
vllm:generation_tokens_total{engine="0",model_name="m"} 99.0 1795262895000
vllm:generation_tokens_total{engine="1",model_name="m"} 1.0
vllm:num_preemptions_total{engine="0"} 3.0
vllm:spec_decode_num_drafts_total{engine="0"} 10.0
vllm:spec_decode_num_draft_tokens_total{engine="0"} 40.0
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 30.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 9.0
vllm:request_prompt_tokens_bucket{engine="0",le="+Inf"} 3.0
"""
READING = ServerMetrics(3, 4, 0.375, 200, 50, 1_100_000, 100, 3, 10, 40, 30)


def read(endpoint: Endpoint) -> ServerMetrics:
    async def main() -> ServerMetrics:
        async with aclosing(OpenAIModel(endpoint.base_url, "m")) as client:
            return await client.metrics()

    return asyncio.run(main())


def test_engines_are_summed_and_neighbours_in_name_left_out() -> None:
    assert parse_metrics(PAGE.encode()) == READING
    assert READING.prefix_hit_rate == 0.25
    assert ServerMetrics(0, 0, 0.0, 0, 0, 0, 0, 0).prefix_hit_rate == 0.0


def test_lines_that_make_no_sense_are_passed_over() -> None:
    strange = "vllm:num_requests_running{engine= 7\nvllm:num_requests_running NaN\nvllm: 1\n}{\n"
    strange += 'vllm:num_requests_waiting{engine="0} 9\nvllm:num_requests_waiting +Inf\n\xff\n'
    assert parse_metrics(strange.encode("latin-1") + PAGE.encode()) == READING


@pytest.mark.parametrize("page", [b"", b"<html>", b"python_info 1.0\n", b"vllm:prompt_tokens 1\n"])
def test_another_servers_page_is_no_reading(page: bytes) -> None:
    assert parse_metrics(page) is None


@given(st.lists(st.sampled_from([*PAGE.split("\n")[2:6], "{", '"', "\\", "\n", "vllm:a{", " 1"])))
def test_no_page_is_too_strange(parts: list[str]) -> None:
    reading = parse_metrics("".join(parts).encode())
    assert reading is None or reading.running >= 0


def test_a_client_reads_its_server(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("x"), metrics=Script(plain=PAGE))
    assert read(endpoint) == READING
    assert endpoint.paths == ["metrics"]


@pytest.mark.parametrize("page", [Script(status=404, plain=""), Script(plain="hello")])
def test_a_server_without_metrics_cannot_be_read(endpoints: EndpointServer, page: Script) -> None:
    with pytest.raises(CapabilityError, match="no metrics"):
        read(endpoints.add(says("x"), metrics=page))


def test_a_server_that_fails_says_so(endpoints: EndpointServer) -> None:
    with pytest.raises(ModelUnavailable, match="500"):
        read(endpoints.add(says("x"), metrics=Script(status=500, plain="no")))
