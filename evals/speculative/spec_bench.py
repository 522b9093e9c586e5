"""All prompts of Spec-Bench, by every decoder: tokens a pass and time, each with its spread.

Plain decoding comes first and last at every prompt. Decoders that take longer than plain decoding
get a few prompts of each task (`local.SLOW`). What cannot be made here is named with its reason.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from evals.engine.rows import Row
from evals.planning.effort import Skipped
from evals.speculative import auto
from evals.speculative.cases.prompt import Prompt
from evals.speculative.cases.specbench import TASKS, prompts
from evals.speculative.figures import PLAIN, method_rows, plain_rows
from evals.speculative.local import MODEL, SLOW, table
from evals.speculative.rounds import Answers, Rounds, Size
from evals.speculative.served import Served
from evals.speculative.single import Model
from evals.speculative.systems import Methods, System, systems
from weft.core.errors import ModelNotFound
from weft.serving.weights import locate

__all__ = ["rows", "table"]

TOTAL: Final = "spec_bench"


@dataclass(frozen=True, slots=True)
class Extent:
    """Prompts of each task: `prompts` of them, `few` for the slow decoders; tokens an answer."""

    prompts: int
    few: int
    tokens: int


FULL: Final = Extent(80, 4, 64)
"""80 are all that a task has."""
QUICK: Final = Extent(4, 1, 32)


def rows(quick: bool) -> list[dict[str, Any]]:
    """The figures of `MODEL`. Raises: `Skipped` where it is not, or Spec-Bench is not."""
    try:
        path = locate(MODEL)
    except ModelNotFound as error:
        raise Skipped(str(error)) from error
    extent = QUICK if quick else FULL
    asked = {task: prompts(task, extent.prompts) for task in TASKS}
    return [asdict(row) for row in asyncio.run(measured(path, asked, list(systems()), extent))]


async def measured(
    path: Path, asked: Mapping[str, Sequence[Prompt]], wanted: Sequence[System], extent: Extent
) -> list[Row]:
    """The figures of `wanted` over all prompts that are `asked`, task by task and in all."""
    found: list[Row] = []
    whole, part = list[Answers](), list[Answers]()
    fast = [system for system in wanted if system.name not in SLOW]
    slow = [system for system in wanted if system.name in SLOW]
    size = Size(extent.prompts, extent.tokens, back=False)
    model, served = Model(path), Served(path)
    with Methods(model.network, wanted) as methods:
        rounds = Rounds(model, served, methods)
        for task, its_prompts in asked.items():
            whole.append(await rounds.answers(its_prompts, fast, size))
            part.append(await rounds.answers(its_prompts[: extent.few], slow, size))
            new = list(case_rows(task, whole[-1], part[-1]))
            found += new
            _tell(task, new)
        for name, why in methods.missing.items():
            found.append(Row("all", name, f"skipped: {why}", None, ""))
    await served.close()
    found.append(Row("all", auto.SYSTEM, "skipped: it learns, see the section auto", None, ""))
    return [*found, *case_rows(TOTAL, _joined(whole), _joined(part))]


def case_rows(case: str, whole: Answers, part: Answers) -> Iterator[Row]:
    """Of the decoders that answered all prompts, and of those that answered a part of them."""
    yield from plain_rows(case, whole[PLAIN])
    for answers in (whole, part):
        for name, taken in answers.items():
            if name != PLAIN:
                yield from method_rows(case, name, answers[PLAIN], taken)
                yield Row(case, name, "prompts", len(taken), "prompts")


def _joined(parts: Sequence[Answers]) -> Answers:
    return {name: [one for part in parts for one in part[name]] for name in parts[0]}


def _tell(task: str, found: Sequence[Row]) -> None:
    """What is known so far: a whole run takes hours."""
    metric = "tokens_per_target_forward"
    shown = (f"{row.system} {row.value:.2f}" for row in found if row.metric == metric)
    print(f"{task}, tokens a pass: {', '.join(shown)}", file=sys.stderr, flush=True)
