"""A server of a diffusion model: recognised by its metrics, and asked for a decoder per request."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from tests.serving.openai.endpoint_calls import ask, question
from tests.serving.openai.scripted import VLLM, Endpoint, EndpointServer, Script, says
from weft.core.errors import CapabilityError
from weft.core.ports import Capabilities, Sampling
from weft.core.values import AUTOREGRESSIVE, DecodeSpec, Lossless, Lossy, ToolSpec
from weft.decoding.decoders import parse_decode
from weft.serving.openai import OpenAIModel

METRICS = 'vllm:diffusion_num_denoising_steps_total{engine="0",model_name="m"} 0.0\n'
FAST = Lossy("threshold", (("threshold", 0.9), ("block", 8)))


def filling(endpoints: EndpointServer) -> Endpoint:
    return endpoints.add(
        says("x"),
        model={"owned_by": "vllm", "max_model_len": 512},
        version=Script(plain='{"version": "0.32.0"}'),
        metrics=Script(plain="vllm:num_requests_running 0.0\n" + METRICS),
    )


def sent(endpoint: Endpoint, decode: DecodeSpec = AUTOREGRESSIVE, **settings: Any) -> Any:
    sampling = Sampling(max_tokens=9, temperature=0.5, top_p=0.9, seed=7)
    ask(endpoint, question(sampling=sampling, decode=decode), **settings)
    return endpoint.requests[-1]


def test_the_decoder_goes_along_with_temperature_and_seed(endpoints: EndpointServer) -> None:
    body = sent(filling(endpoints), FAST, extra_body={"vllm_xargs": {"other": 1}})
    assert body["vllm_xargs"] == {
        "other": 1,
        "weft_decode": "threshold,threshold=0.9,block=8",
        "weft_temperature": 0.5,
        "weft_seed": 7,
    }
    assert (body["max_tokens"], body["top_p"]) == (9, 0.9)
    assert not {"temperature", "seed"} & body.keys()
    assert parse_decode(body["vllm_xargs"]["weft_decode"]) == FAST


def test_who_names_no_decoder_gets_the_servers(endpoints: EndpointServer) -> None:
    assert "weft_decode" not in sent(filling(endpoints))["vllm_xargs"]
    plainly = sent(filling(endpoints), Lossless("none"))
    assert plainly["vllm_xargs"]["weft_decode"] == "sequential"


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        ({"decode": Lossless("lookup")}, "no diffusion decoder 'lookup'"),
        ({"decode": Lossless("threshold")}, "may change the text"),
        ({"schema": {"type": "object"}}, "held to no schema"),
        ({"grammar": 'start: "a"'}, "grammar"),
        ({"tools": (ToolSpec("add", "adds", {"type": "object"}),)}, "calls no tools"),
        ({"sampling": Sampling(), "top_logprobs": 2}, "top_logprobs"),
    ],
)
def test_what_it_cannot_do_is_refused_before_it_is_asked(
    endpoints: EndpointServer, wish: dict[str, Any], why: str
) -> None:
    endpoint = filling(endpoints)
    with pytest.raises(CapabilityError, match=why):
        ask(endpoint, question(**wish))
    assert not endpoint.requests


def test_it_says_what_it_can() -> None:
    from weft.serving.openai.server import Server

    told = Server("vllm", version=(0, 32), diffuses=True).capabilities(priority=True)
    assert told == Capabilities(
        token_ids=True, prompt_token_ids=True, priority=True, continuation=True, stop_token_ids=True
    )


def test_a_server_that_writes_on_is_asked_for_no_decoder(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("x"), model=VLLM)
    with pytest.raises(CapabilityError, match="per call"):
        ask(endpoint, question(decode=FAST))


def test_a_page_that_cannot_be_read_is_none_of_a_diffusion_model(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(
        says("x"),
        model={"owned_by": "vllm"},
        metrics=Script(plain="# HELP vllm:diffusion_num_denoising_steps\n"),
    )

    async def offered() -> Capabilities:
        async with aclosing(OpenAIModel(endpoint.base_url, "m")) as client:
            return await client.capabilities()

    assert asyncio.run(offered()).structured_output
