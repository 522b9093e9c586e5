"""A workflow whose model is right more often with examples, or with a prompt that says how long;
studies and contexts of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import weft
from tests.optimisation.table_context import TableContext
from weft.core.ports import ModelRequest
from weft.evaluation.case import Case
from weft.optimisation.candidates import SearchState
from weft.optimisation.options import baseline_of, knob_options
from weft.optimisation.propose.context import ObservedNode, ObservedRun
from weft.optimisation.space import discovered_space
from weft.testing import FakeModel

FLOW = """\
name: colours
description: Names the colour of a thing.
inputs: {thing: string}
models: {small: {use: openai, model: none, base_url: "http://127.0.0.1:9/v1"}}
nodes: {answer: {model: small, prompt: "Colour of {{ thing }}?", temperature: 0}}
outputs: {colour: "{{ answer }}"}
"""
GOLD = {f"thing{n}": ("red", "green", "blue")[n % 3] for n in range(120)}


def rows(splits: tuple[str, ...] = ("train", "dev", "held_out")) -> list[dict[str, Any]]:
    return [
        {"thing": thing, "expected": gold, "id": thing, "split": splits[n % len(splits)]}
        for n, (thing, gold) in enumerate(GOLD.items())
    ]


def helped(request: ModelRequest) -> str:
    """Right for a third of the things; with examples, or a good prompt, for nearly all."""
    *shown, last = [message.content for message in request.messages]
    thing = next(name for name in reversed(last.replace("?", " ").split()) if name in GOLD)
    gains = 0.3 + 0.25 * min(2, len(shown) // 2) + 0.5 * ("one word" in last)
    return GOLD[thing] if Random(f"{thing}:{request.sampling.seed}").random() < gains else "grey"


def study(proposers: list[Any], folder: Path, asked: Callable[..., Any] | None = None) -> Any:
    return weft.optimise_sync(
        weft.loads(FLOW),
        rows(("dev", "held_out", "dev", "train", "held_out")),
        "exact",
        models={"small": FakeModel(helped, model="none")},
        proposers=proposers,
        proposer_model=None if asked is None else FakeModel(asked, model="writer"),
        budget=1500,
        journal=folder / "journal.db",
        replicates=3,
    )


class AnswerContext(TableContext):
    """Observes the one node as well, and passes what is right."""

    async def observe(self, *given: Any) -> list[ObservedRun]:
        found = []
        for run in await super().observe(*given):
            value = run.outputs["colour"]
            node = ObservedNode("answer", "model", inputs=run.case.inputs, value=value)
            score = float(value == run.case.expected)
            found.append(replace(run, score=score, nodes=(node,)))
        return found


def context(text: str = FLOW, **given: Any) -> TableContext:
    train = [Case(thing, {"thing": thing}, gold) for thing, gold in GOLD.items()]
    return AnswerContext(weft.loads(text), {"small": FakeModel(helped)}, train, **given)


def state_of(own: TableContext) -> SearchState:
    knobs = knob_options(discovered_space(own.flow(baseline_of({})).document))
    return SearchState(baseline_of(knobs), knobs, [], baseline_of(knobs))
