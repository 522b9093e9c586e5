"""Every example runs, and comes to what it says it comes to."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import weft
from weft.core.errors import ModelNotFound
from weft.core.values import Denoised
from weft.engine.analysis.trace import Trace
from weft.serving.weights import locate
from weft.testing import FakeModel, MemoryStore
from weft.workflow import FlowResult
from weft.workflow.runtime.models.factory import Models

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.rglob("*.yaml"))


def flow(name: str) -> weft.Flow:
    return weft.load(EXAMPLES / name)


@pytest.fixture
def beside_brief(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(EXAMPLES / "brief"))
    yield
    for name in ("brief", "tools"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_file_checks_and_survives_a_round_trip(path: Path) -> None:
    loaded = weft.load(path)
    loaded.check()
    text = loaded.to_yaml()
    again = weft.loads(text, file=str(path))
    assert again.document == loaded.document
    assert again.to_yaml() == text


def test_mirrors_gets_over_every_failure() -> None:
    result = flow("mirrors/mirrors.yaml").run_sync()
    assert result.status == "succeeded"
    assert result.outputs == {"price": "8.47 EUR", "second_source": 9.21, "in_stock": 124}
    assert result.outcomes["slow"].status == "cancelled"
    assert result.outcomes["rate"].attempts == 2
    assert result.outcomes["patient"].via == "fallback"
    assert result.outcomes["stocks[2]"].status == "failed"


@pytest.mark.parametrize("approved", [True, False])
def test_release_publishes_only_what_a_person_approved(approved: bool) -> None:
    async def main() -> FlowResult:
        run = flow("release/release.yaml").start({})
        waiting = asyncio.create_task(run.wait())
        while not run.questions:
            await asyncio.sleep(0)
        run.answer("approved", approved)
        return await waiting

    result = asyncio.run(main())
    assert result.status == "succeeded"
    assert len(result.outputs["text"]) <= 120 + len("What is new: ")
    assert (result.outcomes["publication"].status == "succeeded") is approved


def test_vote_takes_the_majority() -> None:
    answers = [f'{{"answer": {number}}}' for number in (12, 7, 12, 12, 1, 12, 7, 3)]
    result = flow("vote/vote.yaml").run_sync({}, models={"small": FakeModel(answers)})
    assert result.outputs == {"answer": 12, "agreement": "4 of 8"}


def test_tickets_go_where_their_label_says() -> None:
    labels = ["billing", "bug", "question", "billing", "bug", "question"]
    model = FakeModel([f'{{"topic": "{label}"}}' for label in labels])
    result = flow("tickets/tickets.yaml").run_sync({}, models={"small": model}, store=MemoryStore())
    starts = [text.split(":")[0] for text in result.outputs["handled"]]
    ways = ["accounting will look at", "bug filed", "answered by hand"]
    assert starts == ways * 2
    assert result.outputs["counts"] == {"billing": 2, "bug": 2, "question": 2}


@pytest.mark.usefixtures("beside_brief")
def test_the_brief_in_python_is_the_brief_in_yaml() -> None:
    in_python = importlib.import_module("brief").flow.document
    in_yaml = flow("brief/brief.yaml").document
    assert in_python.nodes == in_yaml.nodes
    assert in_python.tools == in_yaml.tools
    assert in_python.models == in_yaml.models


@pytest.mark.model
def test_the_examples_run_on_the_embedded_model() -> None:
    try:
        locate("smollm2-135m-instruct")
    except ModelNotFound as missing:
        pytest.skip(str(missing))

    async def main() -> list[FlowResult]:
        async with Models() as models:
            return [
                await flow(name).run(inputs, models=models, store=MemoryStore())
                for name, inputs in [
                    ("brief/brief.yaml", {"limit": 3}),
                    ("vote/vote.yaml", {}),
                    ("tickets/tickets.yaml", {"limit": 2}),
                ]
            ]

    brief, vote, tickets = asyncio.run(main())
    assert {brief.status, vote.status, tickets.status} == {"succeeded"}
    assert brief.outputs["brief"].count("\n- **") == 3
    assert brief.usage.completion_tokens > 0
    assert 0 <= vote.outputs["answer"] <= 1000
    assert set(tickets.outputs["counts"]) <= {"billing", "bug", "question"}


def test_lists_are_filled_in_with_fewer_forwards_than_tokens() -> None:
    pytest.importorskip("torch", reason="a local model needs weft[local]")
    trace = Trace()
    result = flow("lists/lists.yaml").run_sync({}, listeners=[trace])
    assert result.outputs == {
        "plain": "Anna Ben Fiona Hugo Tom",
        "sorted": "Anna Ben Fiona Hugo Tom",
        "reversed": "Ben Fiona Tom Anna Hugo",
        "copied": "Hugo Anna Tom Fiona Ben",
    }
    told = {name: node.decoded[0] for name, node in trace.nodes.items() if node.decoded}
    assert isinstance(told["plain"], Denoised)
    assert told["plain"].lossless
    assert told["plain"].forwards == 6  # five names and the end
    quick = [each for name, each in told.items() if name.startswith("quick")]
    assert sum(each.forwards for each in quick) < sum(each.kept for each in quick) / 2
