"""`decode:` of model nodes: what reaches the model, what is refused where, what a report says."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="decoders need weft[local]")

import weft
from tests.workflow import thread_strategy
from tests.workflow.case import HEAD, loads, run
from weft.cli.console import console_on
from weft.cli.reports.outcome import print_report
from weft.core.errors import BuildError, SourceError
from weft.core.events import Event, NodeDecoded
from weft.core.ports import Capabilities, ModelEvent, ModelRequest
from weft.core.values import AUTOREGRESSIVE, Completion, DecodeSpec, Lossless, Lossy, Speculated
from weft.engine.analysis.trace import Trace
from weft.workflow.runtime.models.decoders import decoders, parse_decoder
from weft.workflow.runtime.models.factory import Models, check_model
from weft.workflow.runtime.models.factory import _spec as spec_of

NODE = '  a: {model: small, prompt: "About {{ topic }}", decode: "%s"}'
SERVED = HEAD.replace(
    "local:smollm2-135m-instruct", "{use: %s, model: big, base_url: http://127.0.0.1:9/v1}"
)


class Drafting:
    """Implements `ModelClient`: takes any decoder, and says how its answers were drafted."""

    def __init__(self, *told: Speculated) -> None:
        self.model = "small"
        self.requests: list[ModelRequest] = []
        self._told = list(told)

    async def capabilities(self) -> Capabilities:
        return Capabilities()

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        yield Completion("yes", speculation=self._told.pop(0) if self._told else None)

    async def aclose(self) -> None:
        """Holds nothing."""


def asked(nodes: str) -> list[ModelRequest]:
    model = Drafting()
    assert run(loads(nodes), models={"small": model}).outputs == {"a": "yes"}
    return model.requests


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("lookup:8", Lossless("lookup", (("num_speculative_tokens", 8),))),
        ("auto", Lossless("auto")),
        ("medusa_typical", Lossy("medusa_typical")),
    ],
)
def test_a_node_asks_for_its_decoder(text: str, spec: DecodeSpec) -> None:
    (request,) = asked(NODE % text)
    assert request.decode == spec


def test_nodes_of_one_model_may_differ() -> None:
    second = '  b: {model: small, prompt: "{{ a }}", after: a}'
    requests = asked(NODE % "suffix" + "\n" + second)
    assert [request.decode for request in requests] == [Lossless("suffix"), AUTOREGRESSIVE]


def test_the_threads_of_a_node_that_thinks_ask_for_its_decoder() -> None:
    thinking = '  a: {model: small, prompt: "About {{ topic }}", decode: lookup, think: chorus}'
    with thread_strategy.registered():
        requests = asked(thinking)
    assert {request.decode for request in requests} == {Lossless("lookup")}


def test_an_option_where_its_value_belongs_is_told_how_to_be_written() -> None:
    with pytest.raises(SourceError, match="no decoder 'threshold=2'") as caught:
        loads(NODE % "threshold=2").check()
    assert caught.value.hint == "write threshold:2"


def test_a_decoder_that_is_none_is_refused_at_its_line() -> None:
    with pytest.raises(SourceError, match="no decoder 'lokup'") as caught:
        loads("  # the first node\n" + NODE % "lokup").check()
    assert caught.value.line == 10
    assert "did you mean 'lookup'" in (caught.value.hint or "")
    assert caught.value.node == "a"


@pytest.mark.parametrize(
    ("use", "remedy"), [("vllm", "into the model's `options`"), ("openai", "weft serve")]
)
def test_a_server_is_not_asked_for_a_decoder(use: str, remedy: str) -> None:
    flow = loads(NODE % "lookup:8", head=SERVED % use)
    with pytest.raises(SourceError, match="decodes all of its requests alike") as caught:
        flow.check()
    assert caught.value.line == 9
    assert remedy in (caught.value.hint or "")


def test_a_server_of_a_diffusion_model_is_asked_for_its_decoder() -> None:
    for use in ("vllm", "openai"):
        loads(NODE % "threshold:0.9", head=SERVED % use).check()  # a call tells whether it fills in
    served = HEAD.replace("local:smollm2-135m-instruct", "vllm:%s")
    loads(NODE % "threshold:0.9", head=served % "list-full").check()
    loads(NODE % "threshold:0.9", head=served % "owner/Far-7B").check()
    for model, decode in (("list-full", "lookup:8"), ("list-ar", "threshold:0.9")):
        with pytest.raises(SourceError, match="decodes all of its requests alike"):
            loads(NODE % decode, head=served % model).check()


def test_servers_of_a_diffusion_model_are_started_with_its_decoder() -> None:
    declared = {"use": "vllm", "model": "list-full", "options": {"decode": "threshold:0.9"}}
    check_model(spec_of(declared))
    declared["options"] = {"decode": "treshold"}
    with pytest.raises(BuildError, match="no decoder 'treshold'"):
        check_model(spec_of(declared))


def test_options_of_a_decoder_are_checked_with_the_model_that_they_are_for() -> None:
    head = HEAD.replace("smollm2-135m-instruct", "list-full")
    with pytest.raises(SourceError, match="threshold must be a number from 0 to 1") as caught:
        loads(NODE % "threshold:2", head=head).check()
    assert caught.value.line == 9
    declared = {"use": "local", "model": "list-full", "options": {"decode": "threshold:2"}}
    with pytest.raises(BuildError, match="the options of list-full: threshold must be"):
        check_model(spec_of(declared))
    loads(NODE % "learn2pd", head=head).check()  # whether there is a filter, its weights say
    loads(NODE % "threshold:2", head=HEAD.replace("smollm2-135m-instruct", "none")).check()


def test_a_decoder_of_an_adapter_is_checked_by_what_its_base_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The base is the model of that name that is installed, or a folder here."""
    base = tmp_path / "smollm2-135m-instruct"
    base.mkdir()
    (base / "config.json").write_text('{"model_type": "llama", "vocab_size": 49152}')
    monkeypatch.chdir(tmp_path)
    head = HEAD.replace("smollm2-135m-instruct", "smollm2-block")
    with pytest.raises(SourceError, match="threshold must be a number from 0 to 1"):
        loads(NODE % "threshold:2", head=head).check()
    loads(NODE % "threshold:0.9", head=head).check()


def test_an_option_of_a_model_that_is_none_is_told_with_the_closest() -> None:
    declared = {"use": "local", "model": "list-full", "options": {"canvas_token": 8}}
    with pytest.raises(BuildError, match="no option 'canvas_token'") as caught:
        check_model(spec_of(declared))
    assert "canvas_tokens" in (caught.value.hint or "")


def test_a_choice_among_models_is_refused_for_the_served_one() -> None:
    head = HEAD.replace(
        "models:\n",
        "models:\n  far: {use: openai, model: m, base_url: http://127.0.0.1:9/v1}\n"
        "  either: {use: route, among: [small, far]}\n",
    )
    node = (NODE % "lookup").replace("model: small", "model: either")
    with pytest.raises(SourceError, match="server of `far`"):
        loads(node, head=head).check()


def test_a_model_that_thinks_takes_no_decoder_of_a_node() -> None:
    head = HEAD.replace("models:\n", "models:\n  deep: {use: think, model: small, think: sample}\n")
    node = (NODE % "lookup").replace("model: small", "model: deep")
    with pytest.raises(SourceError, match="`deep` thinks") as caught:
        loads(node, head=head).check()
    assert "`small`" in (caught.value.hint or "")


def test_a_model_in_this_process_may_have_a_decoder_for_all_its_requests() -> None:
    declared = {"use": "local", "model": "m", "options": {"decode": "suffix:4"}}
    check_model(spec_of(declared))
    declared["options"] = {"decode": "sufix"}
    with pytest.raises(BuildError, match="no decoder 'sufix'"):
        check_model(spec_of(declared))


def test_a_decoder_for_all_models_is_checked_at_once() -> None:
    with pytest.raises(BuildError, match="no decoder 'x'"):
        Models(decode="x")


def test_python_says_it_too() -> None:
    flow = weft.Flow("f", models={"small": "local:smollm2-135m-instruct"})
    a = flow.model("small", "hello", decode="lookup:4", name="a")
    flow.output(a=a)
    assert "decode: lookup:4" in flow.to_yaml()
    assert weft.loads(flow.to_yaml()).document == flow.document


def test_every_decoder_tells_what_it_is() -> None:
    found = {each.name: each for each in decoders()}
    assert found["lookup"].lossless
    assert not found["medusa_typical"].lossless
    assert all(each.summary for each in found.values())
    for each in found.values():
        kind = Lossless if each.lossless else Lossy
        assert isinstance(parse_decoder(each.name), kind)


EXACT = Speculated("suffix", drafted=40, accepted=30, forwards=20)
LOOSE = Speculated("medusa_typical", drafted=10, accepted=5, forwards=10, lossless=False)
BROKEN = replace(EXACT, fallback="ValueError: no more")


def reported(*told: Speculated, nodes: str = NODE % "suffix") -> tuple[str, list[Event]]:
    trace, events = Trace(), list[Event]()
    run(loads(nodes), models={"small": Drafting(*told)}, listeners=[trace, events.append])
    out = io.StringIO()
    print_report(console_on(out), trace, {}, {})
    return out.getvalue(), events


def test_a_report_says_how_a_node_was_drafted() -> None:
    text, events = reported(EXACT)
    assert "suffix: 2.5 tokens a pass, 75% of drafts kept" in " ".join(text.split())
    (event,) = [event for event in events if isinstance(event, NodeDecoded)]
    assert (event.node, event.speculated) == ("a", EXACT)


def test_a_report_calls_a_lossy_decoder_lossy() -> None:
    text, _ = reported(LOOSE)
    assert "medusa_typical (lossy): 1.5 tokens a pass" in " ".join(text.split())


def test_a_report_says_why_drafting_was_given_up() -> None:
    text, _ = reported(BROKEN)
    assert "given up in 1 of 1: ValueError: no more" in " ".join(text.split())


def test_the_items_of_a_map_are_told_together() -> None:
    nodes = """\
  a:
    map: "{{ [1, 2] }}"
    as: it
    do: {model: small, prompt: "{{ it }}", decode: suffix}\
"""
    text, _ = reported(EXACT, replace(EXACT, accepted=10), nodes=nodes)
    assert "suffix: 2.0 tokens a pass, 50% of drafts kept" in " ".join(text.split())


def test_of_an_answer_that_was_not_drafted_nothing_is_told() -> None:
    trace = Trace()
    run(loads(NODE % "suffix"), models={"small": Drafting()}, listeners=[trace])
    assert not any(node.decoded for node in trace.nodes.values())
