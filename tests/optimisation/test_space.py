"""Spaces of knobs, declared and discovered, and their exact enumeration."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.optimisation.edits.flows import TEXT, echo
from weft.errors import BuildError, SourceError
from weft.optimisation.edits import Hoist, Patch, addresses
from weft.optimisation.edits.error import EditError
from weft.optimisation.enumeration import Enumeration, enumerate_space
from weft.optimisation.space import Space, declared_space, discovered_space
from weft.optimisation.table import OutcomeTable, TableRun
from weft.testing import FakeModel
from weft.workflow.document.spec.document import node_address, walk

KNOBS = """
optimise:
  knobs:
    rating: {model: [small, big], samples: [1, 3], prompt: ["Judge {{ answer.why }}"]}
    answer: {schema_order: true, prompt: true, demonstrations: {max: 2}}
    short: {width: [1, 4], optional: "{{ notes }}"}
    notes/note: {temperature: [0.0, 0.7]}
"""


def names(space: Space) -> dict[str, list[Any]]:
    return {knob.name: [option.value for option in knob.options] for knob in space.knobs}


def test_a_document_declares_its_knobs() -> None:
    flow = weft.loads(TEXT + KNOBS)
    space = declared_space(flow.document)
    found = names(space)
    assert found.pop("answer.schema_order") == [["answer", "why"], ["why", "answer"]]
    assert found.pop("rating.prompt") == ["Rate {{ answer.answer }}", "Judge {{ answer.why }}"]
    assert found == {
        "rating.model": ["small", "big"],
        "short.width": [None, 1, 4],
        "notes/note.temperature": [None, 0.0, 0.7],
        "rating.samples": [1, 3],
        "short.optional": [True, False],
    }
    assert space.open == (("answer", "prompt"), ("answer", "demonstrations"))
    assert space.size == 2 * 2 * 2 * 3 * 3 * 2 * 2
    assert weft.loads(flow.to_yaml()).document == flow.document
    assert Space(()).size == 1


def test_knobs_are_discovered() -> None:
    space = discovered_space(weft.loads(TEXT).document)
    assert set(names(space)) == {
        *("notes/intro.model", "notes/note.model", "short/do.model"),
        *("answer.model", "answer.schema_order", "rating.model"),
    }
    assert ("short/do", "prompt") in space.open


def test_candidates_are_the_document_and_every_other_combination_once() -> None:
    flow = weft.loads(TEXT + KNOBS)
    space = declared_space(flow.document)
    found = list(space.candidates(flow))
    assert found[0].flow is flow
    assert not found[0].patch.edits
    # the width of a map that is dropped makes no difference
    assert len(found) == 2 * 2 * 2 * 3 * 2 * (3 + 1)
    assert len({each.digest for each in found}) == len(found)
    for each in found[:: len(found) // 7]:
        assert each.patch.apply(flow).document == each.flow.document


def test_a_combination_that_does_not_fit_is_refused() -> None:
    knobs = "optimise: {knobs: {rating: {prompt: ['{{ nowhere }}', 'Now']}}}\n"
    flow = weft.loads(TEXT + knobs)
    refused: list[EditError] = []
    found = list(declared_space(flow.document).candidates(flow, refused.append))
    assert (len(found), [error.node for error in refused]) == (2, ["rating"])
    with pytest.raises(EditError, match="nowhere"):
        list(declared_space(flow.document).candidates(flow))


@pytest.mark.parametrize(
    ("knobs", "why"),
    [
        ("{ratin: {prompt: true}}", "there is no node `ratin`"),
        ("{notes/do: {prompt: true}}", "there is no node `notes/do`"),
        ("{rating: {model: [huge]}}", "there is no model called `huge`"),
        ("{rating: {models: [big]}}", "models"),
    ],
)
def test_knobs_of_nothing_are_refused_where_they_stand(knobs: str, why: str) -> None:
    with pytest.raises(SourceError, match=why) as caught:
        weft.loads(TEXT + f"optimise:\n  knobs: {knobs}\n")
    assert caught.value.line == TEXT.count("\n") + 2


def test_knobs_of_a_node_that_an_edit_removes_go_with_it() -> None:
    knobs = "optimise: {knobs: {notes/intro: {prompt: true}, rating: {prompt: true}}}\n"
    flow = Patch((Hoist(node="notes/intro"),)).apply(weft.loads(TEXT + knobs))
    assert flow.document.optimise is not None
    assert list(flow.document.optimise.knobs) == ["rating"]


def test_addresses_of_nodes_are_the_same_everywhere() -> None:
    for path in sorted((Path(__file__).parents[1] / "workflow" / "whole").glob("*.yaml")):
        document = weft.load(path).document
        found = [node_address(place) for place, _ in walk(document.nodes)]
        assert sorted(addresses(document)) == sorted(found)


# -- enumeration -------------------------------------------------------------------------------


def branches(count: int, options: int) -> weft.Flow:
    """`count` branches of `options` prompts each, and a node that joins their values."""
    prompts = {
        f"b{k}": [f"Branch {k}, style {c}: {{{{ x }}}}" for c in range(options)]
        for k in range(count)
    }
    return weft.loads(
        json.dumps(
            {
                "name": "branches",
                "inputs": {"x": "string"},
                "models": {"m": "local:tiny"},
                "optimise": {"knobs": {b: {"prompt": texts[1:]} for b, texts in prompts.items()}},
                "nodes": {
                    **{b: {"model": "m", "prompt": texts[0]} for b, texts in prompts.items()},
                    "joined": {"value": [f"{{{{ {b} }}}}" for b in prompts]},
                },
                "outputs": {"joined": "{{ joined }}"},
            }
        )
    )


def worth(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:2])


def value_of(answers: list[str]) -> float:
    """A score in which branches interact: the best choice of each by itself is not the best."""
    numbers = list(map(int, answers))
    return sum(numbers) - 2 * max(numbers) + numbers[0] * numbers[-1] / 40_000


def enumerated(count: int, options: int, cases: list[str], model: FakeModel) -> Enumeration:
    flow = branches(count, options)

    def score(_: Mapping[str, Any], run: TableRun) -> float:
        return value_of(run.result["joined"])

    return asyncio.run(
        enumerate_space(
            flow,
            declared_space(flow.document),
            [{"x": case} for case in cases],
            score,
            OutcomeTable(),
            models={"m": model},
        )
    )


def check(count: int, options: int, cases: list[str]) -> None:
    model = FakeModel(lambda request: str(worth(request.messages[-1].content)))
    found = enumerated(count, options, cases, model)
    assert len(model.requests) == count * options * len(cases) == found.spent.requests
    assert found.whole.requests == count * options**count * len(cases)
    by_hand = {
        choice: sum(
            value_of([str(worth(f"Branch {k}, style {c}: {x}")) for k, c in enumerate(choice)])
            for x in cases
        )
        / len(cases)
        for choice in product(range(options), repeat=count)
    }
    best = max(by_hand, key=lambda choice: by_hand[choice])
    chosen = found.best.candidate.choice
    assert found.best.mean == pytest.approx(by_hand[best])
    assert chosen == {
        f"b{k}.prompt": f"Branch {k}, style {c}: {{{{ x }}}}" for k, c in enumerate(best)
    }


def test_the_best_of_all_combinations_for_the_calls_of_their_parts() -> None:
    check(3, 3, ["one", "two"])


@pytest.mark.slow
def test_four_branches_of_six_options() -> None:
    """24 calls a case instead of 5,184, and the same winner as by hand."""
    check(4, 6, ["one", "two"])


def test_too_many_candidates_are_refused() -> None:
    flow = weft.loads(TEXT + KNOBS)

    async def all_of(cases: list[dict[str, str]]) -> Enumeration:
        space = declared_space(flow.document)
        models = {"small": echo(), "big": echo()}
        return await enumerate_space(flow, space, cases, lambda *_: 1.0, most=10, models=models)

    with pytest.raises(BuildError, match="288 candidates"):
        asyncio.run(all_of([{"topic": "x"}]))
    with pytest.raises(BuildError, match="no cases"):
        asyncio.run(all_of([]))
