"""`moderator:` of a model: what it reads, where a refusal ends up, and what is wrong where."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="a local model needs weft[local]")

import weft
from weft.core.errors import BuildError, CycleError, SourceError
from weft.core.events import Event, NodeStreamed
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest, Sampling, complete
from weft.core.values import Completion, Message
from weft.decoding.diffusion.guard.moderation import RefusalProbe
from weft.testing import FakeModel
from weft.workflow import FlowResult, load
from weft.workflow.apps.gateway import WorkflowGateway
from weft.workflow.runtime.models.factory import Models, check_model
from weft.workflow.runtime.models.factory import _spec as spec_of

FLOW = """\
name: guarded
models:
  masked:
    use: local
    model: "%s"
    options: {dtype: float32, threads: 1}
    moderator: %s
  judge: {use: local, model: none}
nodes:
  a:
    model: masked
    prompt: "the quick"
    max_tokens: 40
    temperature: 0
    decode: "threshold:0.05,block=8"
outputs: {a: "{{ a }}"}
"""
GUARD = """\
READ = []


def never(text):
    return None


def second(text):
    READ.append(text)
    return "enough" if len(READ) > 1 else None


def broken(text):
    return 1 / 0
"""


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.serving.local.diffusion import tiny

    return tiny.make(tmp_path_factory.mktemp("masked"), "block_causal")


def flow(folder: Path, weights: Path, moderator: str) -> weft.Flow:
    (folder / "guard.py").write_text(GUARD)
    (folder / "flow.yaml").write_text(FLOW % (weights, moderator))
    return load(folder / "flow.yaml")


def run(flow: weft.Flow, **given: Any) -> tuple[FlowResult, str]:
    events = list[Event]()
    result = asyncio.run(flow.run(models=given, listeners=[events.append]))
    return result, "".join(event.text for event in events if isinstance(event, NodeStreamed))


def test_a_function_reads_each_block_before_it_is_shown(tmp_path: Path, weights: Path) -> None:
    plain, _ = run(flow(tmp_path, weights, "./guard.py:never"))
    assert plain.status == "partial"  # a model of random weights writes no end
    refused, shown = run(flow(tmp_path, weights, "./guard.py:second"))
    failure = refused.outcomes[NodeId("a")].failure
    assert failure is not None
    assert failure.message.endswith("was refused: enough")
    assert shown
    assert plain.outputs["a"].startswith(shown)
    assert len(shown) < len(plain.outputs["a"])


def test_a_function_that_fails_shows_nothing_and_says_why(tmp_path: Path, weights: Path) -> None:
    result, shown = run(flow(tmp_path, weights, "./guard.py:broken"))
    failure = result.outcomes[NodeId("a")].failure
    assert failure is not None
    assert "could not judge the answer: ZeroDivisionError" in failure.message
    assert not shown


def test_a_model_of_the_file_judges(tmp_path: Path, weights: Path) -> None:
    asked: list[str] = []

    def judge(request: ModelRequest) -> str:
        asked.append(request.messages[-1].content)
        return '{"verdict": "refuse"}' if len(asked) > 1 else '{"verdict": "allow"}'

    flow(tmp_path, weights, "{model: judge, rules: 'Mind cats.', every: 1}")
    text = (
        (tmp_path / "flow.yaml").read_text().replace('    decode: "threshold:0.05,block=8"\n', "")
    )
    guarded = weft.loads(text)
    masked = FakeModel(lambda _: "one two three")
    result, shown = run(guarded, judge=FakeModel(judge), masked=masked)
    assert result.outcomes[NodeId("a")].failure is not None
    assert asked == ["the quick\none", "the quick\none two"]
    assert shown == "one"


def test_behind_the_gateway_it_is_a_refused_completion(tmp_path: Path, weights: Path) -> None:
    async def main() -> Completion:
        async with Models() as models:
            guarded = flow(tmp_path, weights, "./guard.py:second")
            client = models.client(guarded.unit, "masked")
            request = ModelRequest((Message("user", "hi"),), sampling=Sampling(max_tokens=40))
            return [event async for event in client.generate(request)][-1]  # type: ignore[return-value]

    completion = asyncio.run(main())
    assert (completion.finish_reason, completion.refusal) == ("refused", "enough")
    assert completion.usage.prompt_tokens > 0
    guarded = flow(tmp_path, weights, "./guard.py:never")
    WorkflowGateway([guarded], models=["masked"])  # callers' schemas are limited there, too


def test_a_model_of_few_words_is_warmed_all_the_same() -> None:
    """The list models cannot read the word that loads them."""
    flow = weft.loads(
        (FLOW % ("list-full", "{model: judge}")).replace(
            "  judge: {use: local, model: none}\n", "  judge: {use: local, model: list-full}\n"
        )
    )

    async def main() -> str:
        async with Models() as models:
            await models.warm(flow.unit)
            client: Any = models.of({"use": "local", "model": "list-full"})
            request = ModelRequest(
                (Message("user", "copy | Hugo Anna Tom Fiona Ben"),),
                sampling=Sampling(max_tokens=12, temperature=0.0),
            )
            return (await complete(client, request)).text

    assert asyncio.run(main()).strip() == "Hugo Anna Tom Fiona Ben"


@pytest.mark.parametrize(
    ("moderator", "error", "why"),
    [
        ("./guard.py:nothing", SourceError, "no function 'nothing'"),
        ("./other.py:never", SourceError, "other.py"),
        ("{model: jugde}", SourceError, "no model called `jugde`"),
        ("{model: masked}", SourceError, "would wait for itself"),
        ("{every: 3}", SourceError, "needs `call` or `model`"),
        ("{call: './guard.py:never', model: judge}", SourceError, "has `call` and `model`"),
        ("{call: './guard.py:never', rules: x}", SourceError, "`rules` are for a `model`"),
        ("{model: judge, every: 0}", SourceError, "greater than or equal to 1"),
    ],
)
def test_what_is_wrong_is_told_at_its_line(
    tmp_path: Path, weights: Path, moderator: str, error: type[SourceError], why: str
) -> None:
    with pytest.raises(error, match=why) as caught:
        flow(tmp_path, weights, moderator).check()
    assert caught.value.line == 7


def test_two_models_do_not_judge_each_other(tmp_path: Path, weights: Path) -> None:
    text = FLOW % (weights, "{model: judge}")
    text = text.replace("model: none}", "model: none, moderator: {model: masked}}")
    with pytest.raises(SourceError, match="would wait for itself") as caught:
        weft.loads(text).check()
    assert isinstance(caught.value.__cause__, CycleError)


def test_other_places_refuse_one() -> None:
    with pytest.raises(BuildError, match="needs a workflow file"):
        Models().of({"use": "local", "model": "m", "moderator": "./guard.py:never"})
    with pytest.raises(BuildError, match="for Python programs") as caught:
        check_model(spec_of({"use": "local", "model": "m", "options": {"moderator": "x"}}))
    assert "beside `options`" in (caught.value.hint or "")
    thinks = "name: t\nmodels: {m: {use: think, model: a, think: sample, moderator: x}}\n"
    with pytest.raises(SourceError, match="does not go with"):
        weft.loads(thinks + "nodes: {a: {value: 1}}\noutputs: {a: 1}\n")


SCHEMA = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}


def answered(weights: Path, schema: dict[str, Any], **options: Any) -> Completion:
    declared = {"use": "local", "model": str(weights), "options": {"threads": 1, **options}}
    request = ModelRequest(
        (Message("user", "hi"),), sampling=Sampling(max_tokens=30, temperature=0), schema=schema
    )

    async def main() -> Completion:
        async with Models() as models:
            client = models.of(declared)
            *_, last = [event async for event in client.generate(request)]
            assert isinstance(last, Completion)
            return last

    return asyncio.run(main())


def test_what_a_model_would_refuse_is_refused_with_a_schema_too(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from weft.serving.local.diffusion import intake
    from weft.serving.local.tokenizer import LocalTokenizer

    monkeypatch.setattr(intake, "RefusalProbe", partial(RefusalProbe, most=0.2))
    tokens = LocalTokenizer.read(weights)
    texts = [text for number in range(3, 400) if (text := tokens.decode([number]))]
    refused = answered(weights, SCHEMA, refusals=texts)  # any beginning is a refusal here
    assert (refused.text, refused.finish_reason) == ("", "refused")
    assert refused.refusal == "the model would refuse"
    assert refused.usage.forwards == 1
    fine = answered(weights, SCHEMA, refusals=["zzzzzzzzzzzzzz"])
    assert fine.finish_reason == "stop"
    plain = answered(weights, SCHEMA)
    assert (fine.text, fine.usage.forwards) == (plain.text, plain.usage.forwards + 1)


def test_limits_on_schemas_may_be_declared(weights: Path) -> None:
    limits = {"words": 1, "total_words": 1}
    assert answered(weights, SCHEMA, priors=limits).finish_reason == "stop"
    long = {"type": "object", "properties": {"a b": {"enum": [1]}}, "required": ["a b"]}
    with pytest.raises(weft.core.errors.ModelRequestError, match="literal of 2 words"):
        answered(weights, long, priors=limits)
    for wrong in ({"priors": {"word": 1}}, {"refusals": "no"}, {"refusals": [""]}):
        with pytest.raises(BuildError, match="the options of m"):
            check_model(spec_of({"use": "local", "model": "m", "options": wrong}))
