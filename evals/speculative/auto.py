"""`decode: auto` of the local engine beside plain decoding, by the clock, in one interleaved run.

Every prompt is answered plainly, then by `auto`, then plainly again, so that a machine that slows
down does not tell for either. `auto` is asked once: what it wrote, it would only have to copy.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any, Final

from evals.engine.rows import Lookup, Row
from evals.planning.effort import Skipped
from evals.reasoning.report import Target
from evals.speculative.cases import AGENTS, CASES
from evals.speculative.cases.prompt import Prompt
from evals.speculative.figures import PLAIN, method_rows, plain_rows
from evals.speculative.served import Served
from evals.speculative.taken import Taken, Together
from weft.core.errors import ModelNotFound
from weft.core.values import AUTOREGRESSIVE, Lossless
from weft.serving.weights import locate

MODEL: Final = "smollm2-135m-instruct"
SYSTEM: Final = "auto"
DECODE: Final = Lossless("auto", (("remember", False),))
"""It begins with what weft comes with, whatever this machine has learnt."""
TARGETS: Final = (
    Target("all", SYSTEM, "slowest_case", 0.95),
    Target("agents", SYSTEM, "wall_ratio_total", 1.0),
    Target("all", SYSTEM, "identical_outputs", 1.0),
)


@dataclass(frozen=True, slots=True)
class Size:
    """Prompts of each case, and tokens of an answer."""

    prompts: int
    tokens: int


QUICK: Final = Size(1, 32)
FULL: Final = Size(6, 64)
_HELD: Final = 256
"""Tokens for an answer that a grammar holds: one that is cut off is no answer."""
Answers = dict[str, tuple[list[Taken], list[Taken]]]
"""By case: plain ones, and those of `auto`."""


def rows(quick: bool) -> list[dict[str, Any]]:
    """The figures of `MODEL`. Raises: `Skipped` where it is not."""
    try:
        path = locate(MODEL)
    except ModelNotFound as error:
        raise Skipped(str(error)) from error
    return [asdict(row) for row in asyncio.run(_measured(path, QUICK if quick else FULL))]


def table(rows: Sequence[Row]) -> str:
    """A case a line."""
    figures = Lookup(rows)
    cases = list(dict.fromkeys(row.case for row in rows if row.metric == "wall_ratio_total"))
    shown = ("wall_ratio_total", "tokens_per_target_forward", "drafted_per_token", "proposal_ms")
    lines = [f"{'':16}" + "".join(f"{name:>27}" for name in shown)]
    for case in cases:
        cells = (figures(case, SYSTEM, name) for name in shown)
        lines.append(f"{case:16}" + "".join(f"{cell or 0.0:27.3f}" for cell in cells))
    return "\n".join(lines)


async def _measured(path: Path, size: Size) -> list[Row]:
    served = Served(path)
    answers: Answers = {}
    found: list[Row] = []
    await _warmed(served)
    for case, prompts in CASES.items():
        print(f"auto: {case}", file=sys.stderr, flush=True)
        try:
            asked = prompts(size.prompts)
        except Skipped as reason:
            found.append(Row(case, "", f"skipped: {reason}", None, ""))
            continue
        answers[case] = await _case(served, asked, size.tokens)
        found += _rows(case, *answers[case])
    await served.close()
    return [*found, *_totals(answers)]


async def _warmed(served: Served) -> None:
    """The first request pays for what is measured and set up once."""
    for decode in (AUTOREGRESSIVE, DECODE):
        await served.answer(CASES["agent_plans"](1)[0], decode, 4)


async def _case(
    served: Served, prompts: Sequence[Prompt], tokens: int
) -> tuple[list[Taken], list[Taken]]:
    plain, chosen = [], []
    for prompt in prompts:
        most = tokens if prompt.free else _HELD
        await served.answer(replace(prompt, schema=None, grammar=None), AUTOREGRESSIVE, 1)
        before = await served.answer(prompt, AUTOREGRESSIVE, most)
        chosen.append(await served.answer(prompt, DECODE, most))
        after = await served.answer(prompt, AUTOREGRESSIVE, most)
        plain.append(replace(before, seconds=mean((before.seconds, after.seconds))))
    return plain, chosen


def _rows(case: str, plain: Sequence[Taken], chosen: Sequence[Taken]) -> list[Row]:
    return [*plain_rows(case, plain), *method_rows(case, SYSTEM, plain, chosen)]


def _totals(answers: Mapping[str, tuple[list[Taken], list[Taken]]]) -> Iterator[Row]:
    for total, cases in {"agents": AGENTS, "all": tuple(CASES)}.items():
        there = [answers[case] for case in cases if case in answers]
        if there:
            plain = [one for of, _ in there for one in of]
            chosen = [one for _, of in there for one in of]
            yield from _rows(total, plain, chosen)
            ratios = [Together(p).seconds / Together(c).seconds for p, c in there]
            yield Row(total, SYSTEM, "slowest_case", min(ratios), "x")
            yield Row(total, PLAIN, "cases", len(there), "cases")
