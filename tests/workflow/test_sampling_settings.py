"""Sampling settings of model nodes: what is sent, what is refused, and what stays the same."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.serving.openai.scripted import EndpointServer
from tests.workflow.test_usage import model, said
from weft.core.ids import NodeId
from weft.errors import BuildError
from weft.testing import FakeModel, MemoryStore
from weft.workflow.history.cassette_file import read_cassette
from weft.workflow.history.recorded_workflow import recorded_unit
from weft.workflow.history.replay import replay
from weft.workflow.runtime.journals import open_journal

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
        {"thinking_tokens": -1},
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


FURTHER: dict[str, Any] = {
    **SETTINGS,
    "top_p": 0.9,
    "top_k": 40,
    "min_p": 0.05,
    "repetition_penalty": 1.1,
}


def sampled(request: Any) -> dict[str, Any]:
    """The settings of a request."""
    found = {name: getattr(request.sampling, name) for name in FURTHER if name != "extra_body"}
    return {**found, "extra_body": request.extra}


@weft.tool(pure=True)
def height(of: str) -> int:
    """How high it is."""
    return 40


PLAN = '1. height(of="tower")\n2. join()\n'
LOOPS = {
    "compiler": [PLAN, json.dumps({"thought": "t", "decision": "finish", "answer": "40"})],
    "react": [json.dumps({"thought": "t", "answer": "40"})],
    "parallel-react": ["40"],
}


@pytest.mark.parametrize("loop", LOOPS)
def test_agents_sample_all_of_their_calls_so(loop: str) -> None:
    fake = FakeModel(LOOPS[loop])
    given = {"tools": [height], "agent": loop, "seed": 7}
    assert asking(fake, **FURTHER, **given).run_sync().ok
    assert fake.requests
    for request in fake.requests:
        assert sampled(request) == FURTHER
        assert request.sampling.seed == 7


def test_strategies_sample_all_of_their_calls_so() -> None:
    fake = FakeModel(lambda _: "the answer is 40")
    think = {"strategy": "sample", "width": 2, **FURTHER}
    assert asking(fake, think=think).run_sync().ok
    assert len(fake.requests) > 1
    assert all(sampled(request) == FURTHER for request in fake.requests)


def test_settings_beside_think_belong_into_it() -> None:
    with pytest.raises(BuildError, match="put it into `think`"):
        asking(FakeModel(["x"]), think="sample", min_p=0.1).check()
    think = {"strategy": "sample", "extra_body": {"stream": False}}
    with pytest.raises(BuildError, match="stream"):
        asking(FakeModel(["x"]), think=think).check()


def test_weft_ask_and_think_take_them() -> None:
    fake = FakeModel(lambda _: "40")
    options = weft.AgentOptions(**FURTHER, seed=7)
    weft.ask_sync("How high?", tools=[height], model=fake, agent="parallel-react", options=options)
    assert [sampled(request) for request in fake.requests] == [FURTHER]
    fake = FakeModel(lambda _: "40")
    weft.think_sync("How high?", model=fake, options=weft.ThinkOptions(width=2, **FURTHER))
    assert fake.requests
    assert all(sampled(request) == FURTHER for request in fake.requests)


def test_secrets_in_extra_body_are_sent_and_not_recorded(
    endpoints: EndpointServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-canary-5521-tail"
    monkeypatch.setenv("UPSTREAM_API_KEY", secret)
    endpoint = endpoints.add(said("hello"))
    client = {**model(endpoint.base_url), "api_key_env": "UPSTREAM_API_KEY"}
    journal = tmp_path / "journal.sqlite"
    flow = asking(client, extra_body={"account": {"token": secret}})
    result = flow.run_sync(journal=str(journal))
    assert result.ok, result.reasons
    sent = next(each for each in endpoint.requests if "messages" in each)
    assert sent["account"] == {"token": secret}
    with closing(open_journal(str(journal), to_read=True)) as stored:
        kept = [repr(stored.header(result.run))]
        kept += [repr(record) for record in stored.records(result.run)]
    assert "[secret:UPSTREAM_API_KEY]" in "\n".join(kept)
    assert secret not in "\n".join(kept)
    assert not any(
        secret.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()
    )


def test_a_recording_from_before_these_settings_is_replayed() -> None:
    history = read_cassette(Path(__file__).parent / "history" / "before_sampling.cassette")
    header = history.header
    found = replay(history, recorded_unit(header, Path()))
    assert found.identical, found.report()
