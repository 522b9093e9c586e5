"""Whether lossless decoders write what plain decoding writes, to the token: a real model in fp32.

Every prompt is answered plainly and alone, greedily and with temperature 0.8 and top-p 0.9 from a
seed of its own; then by every lossless decoder, alone and eight at a time, in the local engine.
`autoregressive` eight at a time is the control: what it changes, other shapes of passes change, not
drafts. Where an answer differs it is looked at how near the other token was: `largest_gap`, in nats
of its logit where decoding is greedy, else as probability.

A full run writes 200 prompts x 12 tokens x 2 samplings x 2 batches with each decoder. What is left
is long prompts, of which each decoder reads every one four times.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

from evals.planning.effort import Effort, Skipped
from evals.speculative.cases import CASES
from evals.speculative.cases.prompt import Prompt
from evals.speculative.local import SLOW
from evals.speculative.margin import Margin
from evals.speculative.systems import System, systems
from weft.core.errors import ModelNotFound, WeftError
from weft.core.ports import ModelRequest, Sampling, complete
from weft.core.values import AUTOREGRESSIVE, Lossless
from weft.decoding.sampling import SamplingParams
from weft.serving.local import LocalModel, LocalOptions
from weft.serving.weights import locate

MODEL: Final = "smollm2-135m-instruct"
TOGETHER: Final = 8
LONGEST: Final = 600
"""Characters of a prompt."""
PLAIN: Final = System("autoregressive", AUTOREGRESSIVE)
AUTO: Final = System("auto", Lossless("auto"))
SAMPLINGS: Final = {"greedy": SamplingParams(0.0), "sampled": SamplingParams(0.8, top_p=0.9)}

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt, the seed of its answer, and how long that may be."""

    prompt: Prompt
    seed: int
    most_tokens: int

    def request(self, system: System, shaping: SamplingParams) -> ModelRequest:
        """The prompt as `system` is to answer it."""
        sampling = Sampling(
            max_tokens=self.most_tokens,
            temperature=shaping.temperature,
            top_p=shaping.top_p,
            top_k=shaping.top_k,
            seed=self.seed,
        )
        return ModelRequest(self.prompt.messages, sampling=sampling, decode=system.spec)


@dataclass(slots=True)
class Compared:
    """Answers of one system in one setting, each with the plain one where they differ."""

    answers: int = 0
    other: list[tuple[Asked, Tokens, Tokens]] = field(default_factory=list)
    error: str = ""


Found = dict[tuple[str, str], Compared]
"""By setting ("greedy_8": eight at a time) and system."""


def rows(quick: bool) -> list[dict[str, Any]]:
    """All but those with a network that drafts, which `lossless_networks` asks.

    Raises: `Skipped` where the model is not on this machine.
    """
    return rows_of([*(one for one in systems() if one.name not in SLOW), AUTO], quick)


def rows_of(wanted: Sequence[System], quick: bool, tokens: int = 12) -> list[dict[str, Any]]:
    """The lossless ones of `wanted`, with `tokens` an answer.

    Raises: `Skipped` where the model is not on this machine.
    """
    effort = Effort(quick)
    try:
        path = locate(MODEL)
    except ModelNotFound as missing:
        raise Skipped(str(missing)) from missing
    prompts = [Asked(p, n, tokens) for n, p in enumerate(chosen(effort.of(4, 200)))]
    asked = [one for one in wanted if one.lossless]
    compared = asyncio.run(_compare(prompts, asked, alone=effort.of(0, len(prompts))))
    margin = Margin(path)
    return [
        row for (case, system), one in compared.items() for row in _rows(case, system, one, margin)
    ]


def chosen(count: int) -> list[Prompt]:
    """So many prompts without a grammar that are not too long, from all cases in turn."""
    by_case = []
    for prompts in CASES.values():
        try:
            by_case.append([one for one in prompts(count) if one.free and _short(one)])
        except Skipped:
            continue
    mixed = [p for row in zip_longest(*by_case) for p in row if p is not None]
    return mixed[:count]


def _short(prompt: Prompt) -> bool:
    return sum(len(message.content) for message in prompt.messages) <= LONGEST


async def _compare(asked: Sequence[Asked], wanted: Sequence[System], alone: int) -> Found:
    """`alone`: so many of the prompts are also answered one at a time."""
    found: Found = {}
    options = LocalOptions(dtype="float32", max_batch=TOGETHER)
    async with aclosing(LocalModel(MODEL, options)) as model:
        for first in range(0, len(asked), TOGETHER):
            some = asked[first : first + TOGETHER]
            for name, shaping in SAMPLINGS.items():
                plain = await _answers(model, some, PLAIN, shaping, 1)
                for system in (PLAIN, *wanted):
                    for size in (1, TOGETHER):
                        if (size == 1 and system is PLAIN) or (size == 1 and first >= alone):
                            continue
                        into = found.setdefault((f"{name}_{size}", system.name), Compared())
                        if not into.error:
                            await _add(into, model, some, system, shaping, size, plain)
            other = sum(len(one.other) for one in found.values())
            done = f"lossless {first + len(some)}/{len(asked)}: {other} answers differ so far"
            print(done, file=sys.stderr, flush=True)
    return found


async def _add(
    into: Compared,
    model: LocalModel,
    some: Sequence[Asked],
    system: System,
    shaping: SamplingParams,
    size: int,
    plain: Sequence[Tokens],
) -> None:
    try:
        answers = await _answers(model, some, system, shaping, size)
    except WeftError as error:
        into.error = error.message
        return
    into.answers += len(answers)
    for one, answer, wanted in zip(some, answers, plain, strict=True):
        if answer != wanted:
            into.other.append((one, wanted, answer))


async def _answers(
    model: LocalModel, asked: Sequence[Asked], system: System, shaping: SamplingParams, size: int
) -> list[Tokens]:
    """Tokens of the answers in order, `size` requests at a time."""
    found: list[Tokens] = []
    for first in range(0, len(asked), size):
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(complete(model, one.request(system, shaping)))
                    for one in asked[first : first + size]
                ]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        found += [task.result().token_ids for task in tasks]
    return found


def _rows(case: str, system: str, one: Compared, margin: Margin) -> Iterator[dict[str, Any]]:
    if one.error:
        yield _row(case, system, f"skipped: {one.error}", None, "")
        return
    yield _row(case, system, "identical_outputs", 1 - len(one.other) / one.answers, "share")
    yield _row(case, system, "answers", one.answers, "answers")
    if one.other:
        shaping = SAMPLINGS[case.split("_")[0]]
        gaps = [
            margin.between(asked.prompt, shaping, asked.seed, plain, answer)
            for asked, plain, answer in one.other
        ]
        unit = "nats" if shaping.greedy else "probability"
        yield _row(case, system, "largest_gap", max(gaps), unit)


def _row(case: str, system: str, metric: str, value: float | None, unit: str) -> dict[str, Any]:
    return {"case": case, "system": system, "metric": metric, "value": value, "unit": unit}
