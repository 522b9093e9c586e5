"""One plan from a real model, or in a word why there is none. Knows no benchmark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from weft.core.errors import ModelError, PlanError
from weft.core.ports import ModelClient, Sampling
from weft.core.values import ToolSpec, Usage
from weft.planner.compact import planning_messages
from weft.planner.grammar.limits import Constrain
from weft.planner.plan import Plan
from weft.planner.planner import Planner

MAX_TOKENS: Final = 320
_KINDS: Final = (
    ("cut_off", "was cut off"),
    ("no_join", "without its join|the text ends inside"),
    ("unknown_tool", "there is no tool"),
    ("no_number", "is no step"),
    ("numbering", r"the number \d+ follows"),
    ("missing_argument", "is missing"),
    (
        "wrong_reference",
        "there is no step|is not there yet|outside of a `for each`|has no property",
    ),
    ("unknown_argument", "has no parameter|is one too many|has no name"),
    ("too_long", "more than"),
    ("syntax", "is expected|is not closed|is given twice"),
)


@dataclass(frozen=True, slots=True)
class Planned:
    """`plan` is None where `error` says in a word what is wrong with the text.

    `written`: that text. `refused`: the model's client raised. `notes`: deviations from the
    settings, such as a plan that could not be held to a grammar.
    """

    plan: Plan | None
    error: str
    usage: Usage
    written: str = ""
    refused: bool = False
    notes: tuple[str, ...] = ()


async def planned(
    model: ModelClient,
    constrain: Constrain,
    question: str,
    tools: Sequence[ToolSpec],
    max_tokens: int = MAX_TOKENS,
) -> Planned:
    """The plan that `model` writes greedily, within `max_tokens`."""
    used = Usage()
    notes: list[str] = []

    def spend(usage: Usage) -> None:
        nonlocal used
        used += usage

    planner = Planner(model, constrain=constrain, sampling=Sampling(max_tokens, 0.0))
    form = (await model.capabilities()).plan_form
    stream = planner.stream(
        planning_messages(form, question, tools), tools, on_usage=spend, on_note=notes.append
    )
    try:
        async with aclosing(stream) as parts:
            async for part in parts:
                if isinstance(part, Plan):
                    return Planned(part, "", used, notes=tuple(notes))
    except PlanError as error:
        return Planned(None, kind(error), used, error.written or "", notes=tuple(notes))
    except ModelError as error:
        return Planned(None, type(error).__name__, used, refused=True, notes=tuple(notes))
    return Planned(None, "no_join", used)


def kind(error: PlanError) -> str:
    """The class of what is wrong with a plan: the first that its message names."""
    for name, pattern in _KINDS:
        if re.search(pattern, error.message):
            return name
    return "wrong_argument" if error.step is not None else "syntax"
