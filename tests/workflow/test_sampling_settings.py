"""Sampling settings of model nodes: what is sent, what is refused, and what stays the same."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from tests.serving.openai.scripted import EndpointServer
from tests.workflow.test_usage import model, said
from weft.core.ids import NodeId
from weft.errors import BuildError
from weft.testing import FakeModel, MemoryStore

SETTINGS: dict[str, Any] = {
    "presence_penalty": 0.5,
    "frequency_penalty": -0.5,
    "logit_bias": {"42": -5.0},
    "reasoning_effort": "low",
    "extra_body": {"verbosity": "low"},
}


def asking(declared: Any, **options: Any) -> weft.Flow:
    flow = weft.Flow("sampling", models={"m": declared})
    flow.output(r=flow.model("m", "hi", **options))
    return flow


def failure_of(flow: weft.Flow) -> str:
    failure = next(iter(flow.run_sync().outcomes.values())).failure
    return str(failure)


def test_settings_reach_the_server(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(said("hello"))
    client = model(endpoint.base_url)
    assert asking(client, **SETTINGS).run_sync().ok
    sent = next(each for each in endpoint.requests if "messages" in each)
    assert {name: sent[name] for name in SETTINGS if name != "extra_body"} | {
        "verbosity": sent["verbosity"]
    } == {name: value for name, value in SETTINGS.items() if name != "extra_body"} | {
        "verbosity": "low"
    }


def test_a_setting_beyond_the_protocol_is_refused_where_the_server_is_unknown(
    endpoints: EndpointServer,
) -> None:
    endpoint = endpoints.add(said("hello"), model={"owned_by": "somebody"})
    client = model(endpoint.base_url)
    assert "repetition_penalty" in failure_of(asking(client, repetition_penalty=1.5))


def test_extra_body_overwrites_nothing(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(said("hello"))
    client = model(endpoint.base_url)
    flow = asking(client, temperature=0.5, extra_body={"temperature": 0.9})
    assert "ModelRequestError: extra fields temperature" in failure_of(flow)
    with pytest.raises(BuildError, match="stream"):
        asking(client, extra_body={"stream": False}).check()


@pytest.mark.parametrize(
    "wrong",
    [
        {"presence_penalty": 3},
        {"repetition_penalty": 0},
        {"logit_bias": {"the": 1}},
        {"logit_bias": {"1": 101}},
        {"reasoning_effort": ""},
    ],
)
def test_values_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BuildError):
        asking(FakeModel(["x"]), **wrong).check()


def test_token_ids_of_logit_bias_may_be_numbers() -> None:
    fake = FakeModel(["x"])
    assert asking(fake, logit_bias={42: -5}).run_sync().ok
    assert fake.requests[0].sampling.logit_bias == {"42": -5.0}


def test_the_embedded_model_refuses_what_it_lacks() -> None:
    names = [name for name in SETTINGS if name != "extra_body"]
    flow = weft.Flow("sampling", models={"m": "local:list-ar"})
    nodes = {name: flow.model("m", "hi", name=name, **{name: SETTINGS[name]}) for name in names}
    flow.output(**nodes)
    outcomes = flow.run_sync().outcomes
    for name in names:
        assert f"CapabilityError: a local model has no {name}" in str(
            outcomes[NodeId(name)].failure
        )


def test_settings_belong_to_the_identity_of_a_node() -> None:
    store = MemoryStore()
    fake = FakeModel(["one", "two", "three"])
    for extra in ({"a": 1}, {"a": 1}, {"a": 2}):
        asking(fake, extra_body=extra, cache=True).run_sync(store=store)
    assert len(fake.requests) == 2
