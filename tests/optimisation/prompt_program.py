"""A program of two prompts, a model that is a function of them, and a context that observes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import weft
from tests.optimisation.table_context import TableContext
from weft.core.ports import ModelRequest
from weft.evaluation.case import Case
from weft.optimisation.candidates import Candidate, CaseOutcome, SearchState
from weft.optimisation.options import EditOption, baseline_of, knob_options
from weft.optimisation.propose.context import ObservedNode, ObservedRun
from weft.optimisation.propose.rewrites import rewritten
from weft.optimisation.space import declared_space
from weft.testing import FakeModel

TRAP = "First the answer."
FLOW = f"""\
name: colours
description: Names the colour of a thing.
inputs: {{thing: string}}
models: {{small: {{use: openai, model: none, base_url: "http://127.0.0.1:9/v1"}}}}
nodes:
  facts: {{model: small, prompt: "Facts of {{{{ thing }}}}"}}
  answer:
    model: small
    prompt: "Colour of {{{{ thing }}}} by {{{{ facts }}}}? {TRAP}"
    schema:
      type: object
      properties: {{answer: {{type: string}}, why: {{type: string}}}}
      required: [answer, why]
outputs: {{colour: "{{{{ answer.answer }}}}"}}
optimise:
  knobs: {{facts: {{prompt: true}}, answer: {{prompt: true, schema_order: true}}}}
"""
BETTER = "Colour of {{ thing }} by {{ facts }} in one word?"
GOLD = {f"thing{n}": ("red", "green", "blue")[n % 3] for n in range(120)}


def model(gains: Callable[[str, list[str]], float]) -> FakeModel:
    """Right with the chance that `gains` gives a prompt and the order of the answer's fields."""

    def answer(request: ModelRequest) -> Any:
        text = request.messages[-1].content
        if request.schema is None:
            return "facts"
        thing = next(word for word in text.replace("?", " ").split() if word in GOLD)
        chance = gains(text, list(request.schema["properties"]))
        right = Random(f"{thing}:{request.sampling.seed}").random() < chance
        return {"answer": GOLD[thing] if right else "grey", "why": "so"}

    return FakeModel(answer, model="none")


def usual_gains(prompt: str, fields: list[str]) -> float:
    """A third at first; more without the trap, with reasons first, and with one word."""
    return (
        0.3 + 0.2 * (TRAP not in prompt) + 0.3 * (fields[0] == "why") + 0.5 * ("one word" in prompt)
    )


class PromptContext(TableContext):
    """Scores what is right, and observes both nodes."""

    def __init__(
        self,
        gains: Callable[[str, list[str]], float] = usual_gains,
        cases: int = 12,
        answer: Callable[[str, int], Any] | None = None,
    ) -> None:
        train = [Case(thing, {"thing": thing}, GOLD[thing]) for thing in list(GOLD)[:cases]]
        super().__init__(weft.loads(FLOW), {"small": model(gains)}, train, answer=answer)
        self.schemas: list[Any] = []
        self.observed: list[tuple[Candidate, str]] = []

    async def observe(self, *given: Any, **named: Any) -> list[ObservedRun]:
        found = []
        for run in await super().observe(*given, **named):
            self.observed.append((given[0], run.case.id))
            value = run.outputs["colour"]
            facts = ObservedNode("facts", "model", inputs=run.case.inputs, value="facts")
            after = {**run.case.inputs, "facts": "facts"}
            node = ObservedNode("answer", "model", "", after, value, needs=("facts",))
            score = float(value == run.case.expected)
            found.append(replace(run, score=score, feedback="colour", nodes=(facts, node)))
        return found

    async def ask(self, prompt: str, **given: Any) -> Any:
        self.schemas.append(given["schema"])
        return await super().ask(prompt, **given)


def state_of(own: TableContext) -> SearchState:
    """Before anything is measured."""
    knobs = knob_options(declared_space(own.flow(baseline_of({})).document))
    return SearchState(baseline_of(knobs), knobs, [], baseline_of(knobs))


def prompt_option(node: str, text: str, old: str = "") -> EditOption:
    """The option that gives a node this prompt."""
    option = rewritten(node, old or text + " ", text + ".", "label", "why")
    assert option is not None
    return option


def block_of(state: SearchState, scores: dict[Candidate, list[float]]) -> SearchState:
    """The state with one more block."""
    block = {each: [CaseOutcome(one) for one in found] for each, found in scores.items()}
    return SearchState(state.baseline, state.knobs, [*state.blocks, block], state.best)
