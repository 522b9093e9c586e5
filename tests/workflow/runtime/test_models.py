"""Models: made from declarations on first use, shared, closed by whoever opened them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.serving.openai.scripted import EndpointServer, Script, chunk
from tests.workflow.case import loads
from weft.core.errors import ModelNotFound, SourceError
from weft.serving.fleet import Fleet
from weft.serving.vllm.launch.decoders import parse_speculative
from weft.testing import FakeModel
from weft.workflow import Models
from weft.workflow.runtime.models.vllm import serve_spec

MAKER = '''\
"""Makes a model."""

from weft.testing import FakeModel

made = []


def make(model, **options):
    made.append((model, options))
    client = FakeModel(lambda request: f"{model}:{request.messages[-1].content}", model=model)
    made.append(client)
    return client
'''
FLOW = """\
name: x
models:
  one: {use: "./maker.py:make", model: m1, options: {heat: 3}}
  same: {use: "./maker.py:make", model: m1, options: {heat: 3}}
  two: {use: "./maker.py:make", model: m2}
nodes:
  a: {model: one, prompt: a}
  b: {model: same, prompt: b}
  c: {model: two, prompt: c}
outputs: {all: ["{{ a }}", "{{ b }}", "{{ c }}"]}
"""


@pytest.fixture
def flow(tmp_path: Path) -> weft.Flow:
    (tmp_path / "maker.py").write_text(MAKER)
    (tmp_path / "flow.yaml").write_text(FLOW)
    return weft.load(tmp_path / "flow.yaml")


def made_by(flow: weft.Flow) -> list[Any]:
    from weft.workflow.runtime.tools.functions import function_of

    found: list[Any] = function_of(flow.unit, "./maker.py:make").__globals__["made"]
    return found


def test_a_factory_of_ones_own(flow: weft.Flow) -> None:
    assert flow.run_sync().outputs == {"all": ["m1:a", "m1:b", "m2:c"]}
    made = made_by(flow)
    assert [m for m in made if isinstance(m, tuple)] == [("m1", {"heat": 3}), ("m2", {})]
    clients = [m for m in made if isinstance(m, FakeModel)]
    assert all(client._closed for client in clients)


def test_a_source_shared_by_several_runs(flow: weft.Flow) -> None:
    async def main() -> None:
        async with Models() as models:
            await flow.run(models=models)
            await flow.run(models=models)
            clients = [m for m in made_by(flow) if isinstance(m, FakeModel)]
            assert len(clients) == 2
            assert not any(client._closed for client in clients)
        assert all(client._closed for client in clients)

    asyncio.run(main())


def test_given_clients_are_left_open(flow: weft.Flow) -> None:
    one = FakeModel(["given"])
    assert flow.run_sync(models={"one": one}).outputs["all"] == ["given", "m1:b", "m2:c"]
    assert not one._closed


def test_a_local_model_that_is_not_there_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    result = loads("  a: {model: small, prompt: x}").run_sync()
    failure = result.outcomes["a"].failure
    assert failure is not None
    assert failure.error == ModelNotFound.__name__
    assert "weft model pull" in str(failure.hint)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{use: local, model: x, base_url: 'http://h/v1'}", "base_url"),
        ("{use: local, model: x, options: {thread: 1}}", "thread"),
        ("{use: local, model: x, options: {threads: 0}}", "threads"),
        ("{use: local, model: x, options: {canvas_tokens: many}}", "must be a whole number"),
        ("{use: local, model: x, options: {max_batch: 1.5}}", "must be a whole number"),
        ("{use: local, model: x, options: {max_items: true}}", "must be a whole number"),
        ("{use: local, model: x, options: {dtype: float8}}", "auto, float32, bfloat16"),
        ("{use: local, model: x, options: {device: 0}}", "device is a name"),
        ("{use: local, model: x, options: {group_wait_s: long}}", "above 0, not 'long'"),
        ("{use: local, model: x, options: {priors: 8}}", "a table of limits"),
        ("{use: local, model: x, options: {priors: {wrods: 8}}}", "did you mean `words`"),
        ("{use: local, model: x, options: {priors: {words: few}}}", "a whole number, not 'few'"),
        ("{use: local, model: x, options: {priors: {free: 1}}}", "true or false, not 1"),
        ("{use: local, model: x, options: {priors: {words: -1}}}", "no limits of -1"),
        ("{use: openai, model: x}", "base_url"),
        ("{use: openai, model: x, base_url: 'http://h/v1', options: {price: {in: 1}}}", "price"),
        ("{use: openai, model: x, base_url: 'http://h/v1', options: {headers: {}}}", "headers"),
        (
            "{use: openai, model: x, base_url: 'http://h/v1', options: {context: [router]}}",
            "router",
        ),
        ("{use: vllm, model: x, options: {context: 3}}", "the option `context`"),
        ("{use: './nowhere.py:make', model: x}", "no file"),
        ("{use: tgi, model: x}", "kind of model"),
        ("{use: openai, model: x, base_url: []}", "base_url"),
        ("{use: openai, model: x, base_url: h}", "`base_url` must look like http://host:port/v1"),
        ("{use: openai, model: x, base_url: ['http://h/v1', 'ftp://h']}", "`base_url` must look"),
        ("{use: openai, model: x, base_url: 'http://[h/v1'}", "such as http://127.0.0.1:8000/v1"),
        ("{use: openai, model: x, base_url: 'http://me:word@h/v1'}", "holds an address only"),
        ("{use: vllm, model: x, base_url: h}", "`base_url` must look like http://host:port/v1"),
        ("{use: vllm, model: x, options: {tp: 0}}", "tp"),
        ("{use: vllm, model: x, options: {tpp: 2}}", "did you mean `tp`"),
        ("{use: vllm, model: x, options: {decode: wish:4}}", "wish"),
        ("{use: vllm, model: x, options: {kv_cache: much}}", "size"),
        ("{use: vllm, model: x, options: {keep_alive: long}}", "keep_alive"),
        ("{use: vllm, model: x, options: {on: kubernetes}}", "ray, or ray:HOST:PORT"),
        ("{use: vllm, model: x, options: {on: 'ray:here'}}", "no address of a Ray cluster"),
        ("{use: vllm, model: x, options: {max_replicas: 2}}", "goes with `on: ray`"),
        ("{use: vllm, model: x, options: {on: ray, max_replicas: many}}", "a whole number"),
        ("{use: vllm, model: x, options: {on: ray, replicas: 3, max_replicas: 2}}", "3 to 2"),
        ("{use: vllm, model: x, options: {on: ray, keep_alive: 1m}}", "end with their run"),
        ("{use: vllm, model: x, options: {on: ray, nodes: 2, tp: 2}}", "a server on one node"),
        ("{use: vllm, model: x, options: {fleet: {in_fligth: 2}}}", "did you mean `in_flight`"),
        ("{use: vllm, model: x, options: {fleet: {in_flight: 0}}}", "in_flight"),
        ("{use: vllm, model: x, options: {fleet: 3}}", "fleet"),
        ("{use: openai, model: x, base_url: 'http://h', options: {discover: wish}}", "no way"),
        (
            "{use: openai, model: x, base_url: ['http://h', 'http://i'], options: {discover: dns}}",
            "one address",
        ),
        (
            "{use: openai, model: x, base_url: 'https://h', options: {discover: dns}}",
            "http://HOST:PORT",
        ),
        ("{use: vllm, model: x, options: {discover: dns}}", "discover"),
        ("{use: vllm, model: x, options: {host: 0.0.0.0}}", "host"),
        ("{use: vllm, model: x, base_url: 'http://h/v1', options: {tp: 2}}", "run already"),
        ("cloud:x", "local:NAME"),
        ("'local:'", "local:NAME"),
        ("'vllm:'", "vllm:NAME"),
    ],
)
def test_wrong_declarations(spec: str, message: str) -> None:
    head = f"name: x\nmodels:\n  small: {spec}\n"
    with pytest.raises(SourceError) as caught:
        loads("  a: {model: small, prompt: x}", head=head).check()
    assert caught.value.line == 3
    assert message in str(caught.value)


def test_openai_clients_are_made_from_declarations() -> None:
    head = """\
name: x
models:
  big:
    use: openai
    model: m
    base_url: "http://127.0.0.1:9/v1"
    api_key_env: NOBODY_HAS_THIS
    options: {price: {prompt: 1, completion: 2}, connections: 3}
"""
    flow = loads("  a: {model: big, prompt: x}", head=head)

    async def main() -> None:
        async with Models() as models:
            client = models.client(flow.unit, "big")
            assert client.model == "m"
            assert models.client(flow.unit, "big") is client

    asyncio.run(main())


def test_what_is_to_be_served_is_made_from_a_declaration() -> None:
    head = """\
name: x
models:
  big:
    use: vllm
    model: m
    api_key_env: SOME_KEY
    options: {tp: 2, replicas: 2, decode: "ngram:4", kv_cache: 1GiB, extra: [--seed, "3"]}
"""
    flow = loads("  a: {model: big, prompt: x}", head=head)
    flow.check()
    spec = serve_spec(flow.unit.document.models["big"])
    assert (spec.model, spec.tp, spec.replicas, spec.kv_cache_bytes) == ("m", 2, 2, 2**30)
    assert spec.decode == parse_speculative("ngram:4")
    assert spec.api_key_env == "SOME_KEY"
    assert spec.extra == ("--seed", "3")


def test_a_short_declaration_is_written_short_again() -> None:
    flow = loads("  a: {model: m, prompt: x}", head="name: x\nmodels: {m: 'vllm:some-model'}\n")
    assert flow.unit.document.models["m"].use == "vllm"
    assert "vllm:some-model" in flow.to_yaml()


@pytest.mark.parametrize("use", ["openai", "vllm"])
def test_replicas_are_found_by_the_name_of_their_service(use: str) -> None:
    with EndpointServer() as server:
        endpoint = server.add(Script([chunk({"content": "found"}), chunk({}, "stop")]))
        url = endpoint.base_url.replace("127.0.0.1", "localhost")
        head = (
            f"name: x\nmodels:\n  m: {{use: {use}, model: m, base_url: '{url}', "
            "options: {discover: dns}}\n"
        )
        flow = loads("  a: {model: m, prompt: x}", head=head)
        assert flow.run_sync().outputs["a"] == "found"
        assert endpoint.requests


@pytest.mark.parametrize("use", ["openai", "vllm"])
def test_several_addresses_are_replicas_of_one_model(use: str) -> None:
    urls = "['http://127.0.0.1:9/v1', 'http://127.0.0.1:8/v1']"
    head = f"name: x\nmodels:\n  m: {{use: {use}, model: m, base_url: {urls}}}\n"
    flow = loads("  a: {model: m, prompt: x}", head=head)
    flow.check()

    async def main() -> None:
        async with Models() as models:
            assert isinstance(models.client(flow.unit, "m"), Fleet)

    asyncio.run(main())


def test_a_declared_adapter_is_asked_for() -> None:
    head = "name: x\nmodels:\n  m: {use: vllm, model: m, options: {adapter: formal}}\n"
    flow = loads("  a: {model: m, prompt: x}", head=head)
    result = flow.run_sync(models={"m": FakeModel(lambda _: "x")})
    (failure,) = (outcome.failure for outcome in result.outcomes.values())
    assert failure is not None
    assert failure.error == "CapabilityError"
    assert "adapters" in failure.message
