"""Attempts at items: proposed by rules or a model, then through all gates. Cheap gates first."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft.agents.calls.catalogue import CallTool
from weft.agents.calls.execution import execution
from weft.agents.calls.gates import CallRefusal, check_item
from weft.agents.calls.generate import GenerateOptions, Outcome, proposals
from weft.agents.calls.item import CallItem
from weft.agents.calls.model import CallModel, draw_tasks
from weft.core.ports import ToolRunner


@dataclass(frozen=True, slots=True)
class WaitingGates:
    """The gates that wait for something: tools that run, a model that judges.

    `reword`: the model says accepted queries in other words first, where it can.
    """

    tools: ToolRunner | None = None
    judge: CallModel | None = None
    reword: CallModel | None = None

    async def outcome(self, item: CallItem, refusal: CallRefusal | None, seed: int) -> Outcome:
        """What becomes of an item that `format` and `semantic` have seen."""
        if refusal is None and self.reword is not None:
            item, _ = await self.reword.reword(item, seed)
        if refusal is None and self.tools is not None:
            refusal = await execution(item, self.tools)
        if refusal is None and self.judge is not None:
            refusal = await self.judge.judge(item)
        return item, refusal


def rule_attempts(
    tools: Sequence[CallTool], options: GenerateOptions, gates: WaitingGates
) -> Iterator[Awaitable[Outcome]]:
    """Items of the proposer `rules`. Raises: as `proposals`."""
    for place, item in enumerate(proposals(tools, options)):
        yield gates.outcome(item, check_item(item), options.seed + place)


def model_attempts(
    tools: Sequence[CallTool], options: GenerateOptions, model: CallModel, gates: WaitingGates
) -> Iterator[Awaitable[Outcome]]:
    """Items that the model proposes, each after an example of the style, written by rules.

    As many as `proposals` gives. Raises: as `proposals`.
    """
    examples: dict[str, CallItem] = {}
    tasks = draw_tasks(tools, options.styles, options.offered, options.seed)
    for item in proposals(tools, options):
        if check_item(item) is None:
            examples[item.style] = item
        offered, style, seed = next(tasks)
        yield _proposed(model, offered, style, seed, dict(examples), gates)


async def _proposed(
    model: CallModel,
    tools: Sequence[CallTool],
    style: str,
    seed: int,
    examples: Mapping[str, CallItem],
    gates: WaitingGates,
) -> Outcome:
    item, refusal = await model.propose(tools, style, seed, examples.get(style))
    return await gates.outcome(item, refusal, seed)
