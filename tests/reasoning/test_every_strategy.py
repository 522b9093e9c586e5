"""Every strategy of the registry comes to an answer from a file, Python and the command line."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import weft
from tests.reasoning.strategy_cases import MODELS, SCHEMA, cases, occasion, read
from weft.cli.main import app
from weft.core.errors import BuildError, ReasoningError
from weft.core.ports import ModelRequest, complete
from weft.core.values import Message
from weft.reasoning.options import ThinkOptions
from weft.reasoning.strategies import STRATEGIES, check_options, make_strategy
from weft.testing import FakeModel, TokenModel
from weft.workflow.runtime.models.factory import Models

OPTIONS: dict[str, Any] = {"width": 3, "rounds": 2, "max_tokens": 400, "budget": 9_000}
each = pytest.mark.parametrize(("strategy", "kind"), cases(), ids=str)
MODEL_FILE = """
from tests.reasoning.strategy_cases import MODELS

def make(model, kind):
    return MODELS[kind](model)
"""


@each
def test_from_python(strategy: str, kind: str) -> None:
    asked = occasion(strategy)
    thought = weft.think_sync(
        asked.question,
        strategy=strategy,
        model=MODELS[kind](strategy),
        documents=asked.documents,
        options=ThinkOptions(**OPTIONS, settings=asked.settings),
    )
    assert thought.answer.strip()
    assert 0 < thought.counts.total_tokens <= OPTIONS["budget"]
    assert thought.counts.critical_path_tokens <= thought.counts.total_tokens
    assert thought.counts.requests >= 1
    assert thought.tree is not None
    assert thought.tree.state.ended
    json.dumps(thought.tree.as_json())


@pytest.mark.parametrize("path_tokens", [40, 800])
@each
def test_the_critical_path_is_capped(strategy: str, kind: str, path_tokens: int) -> None:
    asked = occasion(strategy)
    options = ThinkOptions(**OPTIONS, path_tokens=path_tokens, settings=asked.settings)
    too_short = suppress(ReasoningError)  # some cannot say anything in so few tokens
    with too_short if path_tokens == 40 else nullcontext():
        thought = weft.think_sync(
            asked.question,
            strategy=strategy,
            model=MODELS[kind](strategy),
            documents=asked.documents,
            options=options,
        )
        assert 0 < thought.counts.critical_path_tokens <= path_tokens


@each
def test_from_a_file(strategy: str, kind: str, tmp_path: Path) -> None:
    asked = occasion(strategy)
    (tmp_path / "model.py").write_text(MODEL_FILE, "utf-8")
    think = {
        "strategy": strategy,
        **OPTIONS,
        "settings": asked.settings,
        "documents": {document.name: document.text for document in asked.documents},
    }
    scripted = {"use": "./model.py:make", "model": strategy, "options": {"kind": kind}}
    flow = {
        "name": "thinking",
        "inputs": {"question": "string"},
        "models": {
            "scripted": scripted,
            "careful": {"use": "think", "model": "scripted", "think": {"strategy": strategy}},
        },
        "nodes": {"a": {"model": "scripted", "prompt": "{{ question }}", "think": think}},
        "outputs": {"answer": "{{ a }}"},
    }
    (tmp_path / "flow.yaml").write_text(json.dumps(flow), "utf-8")
    loaded = weft.load(tmp_path / "flow.yaml")
    loaded.check()
    result = loaded.run_sync(question=asked.question)
    assert result.ok, result.missing
    assert result.outputs["answer"].strip()


@each
def test_from_the_command_line(
    strategy: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = occasion(strategy)
    monkeypatch.setattr(Models, "client", lambda *_: MODELS[kind](strategy))
    words = ["think", asked.question, "--strategy", strategy, "--json"]
    words += ["--trace", str(tmp_path / "trace.md"), "--timeline", str(tmp_path / "t.html")]
    for name, value in OPTIONS.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    for name, value in asked.settings.items():
        words += ["--set", f"{name}={json.dumps(value)}"]
    for document in asked.documents:
        (tmp_path / document.name).write_text(document.text, "utf-8")
        words += ["--document", str(tmp_path / document.name)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["outputs"]["answer"].strip()
    assert found["thought"]["counts"]["total_tokens"] <= OPTIONS["budget"]
    trace = (tmp_path / "trace.md").read_text("utf-8")
    assert trace.startswith(f"# A thought by `{strategy}`")
    assert "## Threads" in trace


@pytest.mark.parametrize(
    ("strategy", "kind"), [case for case in cases() if not occasion(case[0]).documents], ids=str
)
def test_as_a_model(strategy: str, kind: str) -> None:
    asked = occasion(strategy)
    options = ThinkOptions(**OPTIONS, settings=asked.settings)
    model = weft.ThoughtModel(MODELS[kind](strategy), strategy, options)
    request = ModelRequest((Message("user", asked.question),))

    async def main() -> str:
        return (await complete(model, request)).text

    assert asyncio.run(main()).strip()


@each
def test_typed_answers(strategy: str, kind: str) -> None:
    """An answer fits its schema; where a strategy cannot see to that, it is said before."""
    asked = occasion(strategy)
    model = MODELS[kind](strategy)
    flow = weft.Flow("typed", models={"m": model})
    documents = {document.name: document.text for document in asked.documents}
    think = {"strategy": strategy, **OPTIONS, "settings": asked.settings, "documents": documents}
    flow.output(answer=flow.model("m", asked.question, schema=SCHEMA, think=think))
    if STRATEGIES[strategy].typed:
        result = flow.run_sync()
        assert result.outputs == {"answer": {"n": 42}}, result.missing
    else:
        with pytest.raises(BuildError, match="a form of their own"):
            flow.check()


@each
def test_everything_in_the_question_reaches_the_model(strategy: str, kind: str) -> None:
    asked, model = occasion(strategy), MODELS[kind](strategy)
    facts = weft.Document("facts.txt", "Zebra 7719\tis\tstriped")
    weft.think_sync(
        asked.question,
        strategy=strategy,
        model=model,
        system="Speak like Wendale.",
        documents=(*asked.documents, facts),
        options=ThinkOptions(**OPTIONS, settings=asked.settings),
    )
    assert any("Wendale" in prompt for prompt in read(model))
    if "graph" not in STRATEGIES[strategy].files:  # a graph is looked up, not read
        assert any("Zebra 7719" in prompt for prompt in read(model))


@each
@pytest.mark.parametrize("calls", [1, 3])
def test_cancelling_ends_every_call(strategy: str, kind: str, calls: int) -> None:
    """On the clock of the wall: some strategies start processes, for which no clock jumps."""
    asked = occasion(strategy)
    model = MODELS[kind](strategy, per_token_s=0.01)
    options = ThinkOptions(**OPTIONS, settings=asked.settings)

    async def main() -> None:
        thinking = asyncio.create_task(
            weft.think(
                asked.question,
                strategy=strategy,
                model=model,
                documents=asked.documents,
                options=options,
            )
        )
        async with asyncio.timeout(60):
            while len(model.requests) < calls and not thinking.done():
                await asyncio.sleep(0.001)
        thinking.cancel()
        await asyncio.wait((thinking,))
        assert model.running == 0

    asyncio.run(main())


@each
@pytest.mark.parametrize("budget", [1, 20, 150])
def test_no_token_more_than_the_budget(strategy: str, kind: str, budget: int) -> None:
    asked, model = occasion(strategy), MODELS[kind](strategy)
    options = ThinkOptions(**{**OPTIONS, "budget": budget}, settings=asked.settings)
    with suppress(ReasoningError):
        weft.think_sync(
            asked.question,
            strategy=strategy,
            model=model,
            documents=asked.documents,
            options=options,
        )
    most = sum(request.sampling.max_tokens or 0 for request in model.requests[:1])
    assert most <= budget
    if isinstance(model, TokenModel):
        assert model.generated <= budget


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_setting_that_is_none_is_found_without_a_model(strategy: str) -> None:
    with pytest.raises(BuildError, match=f"{strategy} has no setting 'nonsense'"):
        check_options(strategy, ThinkOptions(settings={"nonsense": 1}))
    check_options(strategy, ThinkOptions())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_registry_says_what_people_ask(strategy: str) -> None:
    entry = STRATEGIES[strategy]
    assert entry.summary
    assert entry.needs
    assert make_strategy(strategy, FakeModel([""])).name == strategy
