"""A diffusion model as a node: its decoder, what it streams, and what the report says of it."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="a local model needs weft[local]")

import weft
from weft.cli.console import console_on
from weft.cli.exit_code import ExitCode
from weft.cli.reports.outcome import print_report
from weft.cli.run.document import document
from weft.core.events import Event, NodeDenoised, NodeStreamed
from weft.core.ports import Capabilities, ModelEvent, ModelRequest
from weft.core.values import Completion, Denoised
from weft.engine.analysis.trace import Trace
from weft.workflow import FlowResult
from weft.workflow.runtime.models.factory import Models

FLOW = """\
name: filled
models:
  masked: {use: local, model: "%s", options: {dtype: float32, threads: 1%s}}
nodes:
  a: {model: masked, prompt: "the quick", max_tokens: 20, temperature: 0%s}
outputs: {a: "{{ a }}"}
"""
FAST = ', decode: "threshold:0.05,block=8"'


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.serving.local.diffusion import tiny

    return tiny.make(tmp_path_factory.mktemp("masked"), "block_causal")


def flow(weights: Path, node: str = "", options: str = "") -> weft.Flow:
    return weft.loads(FLOW % (weights, options, node))


def run(flow: weft.Flow, **settings: Any) -> tuple[FlowResult, Trace, list[Event]]:
    trace, events = Trace(), list[Event]()

    async def main() -> FlowResult:
        async with Models(decode=settings.pop("decode", None)) as models:
            return await flow.run(models=models, listeners=[trace, events.append], **settings)

    return asyncio.run(main()), trace, events


def reported(trace: Trace) -> str:
    out = io.StringIO()
    print_report(console_on(out), trace, {}, {})
    return " ".join(out.getvalue().split())


def test_a_node_streams_by_blocks_and_reports_forwards(weights: Path) -> None:
    result, trace, events = run(flow(weights, FAST))
    assert result.status == "partial"  # a model of random weights writes no end
    (event,) = [event for event in events if isinstance(event, NodeDenoised)]
    told = event.denoised
    assert (event.node, told.method, told.kept, told.lossless) == ("a", "threshold", 20, False)
    pieces = [event for event in events if isinstance(event, NodeStreamed)]
    assert 2 <= len(pieces) <= 4
    assert "".join(piece.text for piece in pieces) == result.outputs["a"]
    assert sum(piece.tokens for piece in pieces) == 20
    rate = told.tokens_per_forward
    said = f"threshold (lossy): {told.forwards} forwards, {rate:.1f} tokens a forward"
    assert said in reported(trace)
    written = json.loads(document(trace, {}, {}, ExitCode.SUCCEEDED))
    (noted,) = written["outcomes"]["a"]["decoded"]
    assert (noted["forwards"], noted["tokens_per_forward"]) == (told.forwards, rate)
    assert written["outcomes"]["a"]["usage"]["forwards"] == told.forwards


def test_plainly_it_is_one_token_a_forward(weights: Path) -> None:
    _, trace, events = run(flow(weights))
    (event,) = [event for event in events if isinstance(event, NodeDenoised)]
    assert event.denoised.lossless
    assert event.denoised.forwards >= 20
    assert "sequential: 2" in reported(trace)


@pytest.mark.parametrize("where", ["node", "options", "run"])
def test_the_decoder_may_be_said_in_three_places(weights: Path, where: str) -> None:
    node = FAST if where == "node" else ""
    options = ', decode: "threshold:0.05,block=8"' if where == "options" else ""
    settings = {"decode": "threshold:0.05,block=8"} if where == "run" else {}
    _, _, events = run(flow(weights, node, options), **settings)
    (event,) = [event for event in events if isinstance(event, NodeDenoised)]
    assert event.denoised.method == "threshold"


def test_a_decoder_of_the_other_kind_is_refused(weights: Path, tmp_path: Path) -> None:
    from tests.serving.local import tiny

    result, _, _ = run(flow(weights, ", decode: lookup"))
    failure = result.outcomes["a"].failure
    assert failure is not None
    assert failure.error == "CapabilityError"
    assert "this is a diffusion model" in failure.message
    assert "it has: sequential" in (failure.hint or "")
    result, _, _ = run(flow(tiny.make(tmp_path), FAST))
    failure = result.outcomes["a"].failure
    assert failure is not None
    assert "'threshold' is for diffusion models" in failure.message
    assert "it has: lookup" in (failure.hint or "")


def test_python_says_it_too(weights: Path) -> None:
    built = weft.Flow("f", models={"m": {"use": "local", "model": str(weights)}})
    a = built.model("m", "the quick", decode="factor:2", name="a")
    built.output(a=a)
    assert "decode: factor:2" in built.to_yaml()
    assert weft.loads(built.to_yaml()).document == built.document


def test_a_cancelled_run_frees_the_row(weights: Path) -> None:
    text = (FLOW % (weights, "", FAST)).replace("max_tokens: 20", "max_tokens: 900")

    async def main() -> None:
        async with Models() as models:
            begun = asyncio.Event()

            def listen(event: Event) -> None:
                if isinstance(event, NodeStreamed):
                    begun.set()

            loaded = weft.loads(text)
            run = loaded.start(models=models, listeners=[listen])
            waiting = asyncio.create_task(run.wait())
            await begun.wait()
            client: Any = models.client(loaded.unit, "masked")
            run.cancel()
            assert (await waiting).status == "cancelled"
            async with asyncio.timeout(60):
                while client.running:
                    await asyncio.sleep(0.002)

    asyncio.run(main())


class Filling:
    """Implements `ModelClient`: says that it filled an answer in."""

    model = "small"

    async def capabilities(self) -> Capabilities:
        return Capabilities()

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        told = Denoised("factor", forwards=4, kept=10, lossless=False)
        yield Completion("yes", denoised=told)

    async def aclose(self) -> None:
        """Holds nothing."""


def test_the_items_of_a_map_are_told_together() -> None:
    text = """\
name: items
models: {small: local:none}
nodes:
  a:
    map: "{{ [1, 2, 3] }}"
    as: it
    do: {model: small, prompt: "{{ it }}"}
outputs: {a: "{{ a }}"}
"""
    trace = Trace()
    asyncio.run(weft.loads(text).run(models={"small": Filling()}, listeners=[trace]))
    assert "factor (lossy): 12 forwards, 2.5 tokens a forward" in reported(trace)


SCHEMA_NODE = """
  a:
    model: %s
    prompt: "the quick"
    max_tokens: 90
    schema:
      type: object
      properties: {stars: {type: integer, minimum: 1, maximum: 5}}
      required: [stars]
      additionalProperties: false
"""


@pytest.mark.parametrize("name", ["masked", "small"])
def test_a_node_with_a_schema_uses_either_kind_of_model_by_one_word(
    weights: Path, tmp_path: Path, name: str
) -> None:
    from tests.serving.local import tiny

    options = "options: {dtype: float32, threads: 1}"
    text = (
        "name: either\nmodels:\n"
        f"  masked: {{use: local, model: '{weights}', {options}}}\n"
        f"  small: {{use: local, model: '{tiny.make(tmp_path)}', {options}}}\n"
        f"nodes:{SCHEMA_NODE % name}outputs: {{a: '{{{{ a.stars }}}}'}}\n"
    )
    result, _, _ = run(weft.loads(text))
    assert result.status == "succeeded"
    assert 1 <= result.outputs["a"] <= 5
