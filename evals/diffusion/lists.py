"""The list operations: valid answers and tokens a pass of every preset, beside one token a pass.

Operations with one valid answer are asked greedily (`list_copy`), those with several are drawn at
temperature 1 (`list_shuffle`): only then is every valid answer a right one. The others of the two
are asked too, as `list_copy_sampled` and `list_shuffle_greedy`, of fewer systems. `oracle_NAME` is
the same with exact marginals instead of the trained model: what is wrong there is the policy's
doing. All systems answer the same questions, from the same seeds, but most of them only the first
of these (`answers`); the items of a question were held out of training. `ar_twin` is the same model
trained to write from left to right.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from evals.diffusion import twin
from evals.diffusion.asking import Answered, answered, questions
from evals.diffusion.models import adapter as model
from evals.diffusion.models import twin as twin_network
from evals.diffusion.summary import ADAPTIVE, SIZES, TASKS, panel, table
from evals.diffusion.systems import SEQUENTIAL, System, systems
from evals.diffusion.timing import time_rows
from evals.engine.rows import Row
from evals.planning.effort import Effort, Skipped
from evals.reasoning.report import Target
from weft.core.errors import WeftError
from weft.decoding.diffusion.adapter import ModelAdapter
from weft.decoding.diffusion.oracle.adapter import OracleAdapter
from weft.decoding.diffusion.oracle.language import ListQuestion
from weft.decoding.diffusion.oracle.languages import LANGUAGES
from weft.decoding.sampling import SamplingParams

__all__ = ("TARGETS", "panel", "rows", "table")
SEED: Final = 7
"""Of the questions; no setting of any policy was chosen by looking at these."""
GREEDY, SAMPLED = SamplingParams(0.0), SamplingParams(1.0)
BOTH_WAYS: Final = (SEQUENTIAL, "threshold_0.9", ADAPTIVE)
OFTEN: Final = (*BOTH_WAYS, "threshold_0.5", "threshold_0.7", "self_speculative")
"""Those that are asked all questions."""
TARGETS: Final = (
    Target("all_lists", ADAPTIVE, "worst_validity_gain", 0.0),
    Target("all_lists", ADAPTIVE, "worst_z", -2.0),
    Target("independent_lists", ADAPTIVE, "least_tokens_per_forward", 2.0),
    Target("independent_lists", ADAPTIVE, "least_ratio_to_sequential", 2.0),
)


def rows(quick: bool) -> list[dict[str, Any]]:
    """All rows. Raises: `Skipped` where the list model is not there."""
    return [asdict(row) for row in _rows(Effort(quick))]


def _rows(effort: Effort) -> Iterator[Row]:
    found: dict[tuple[str, str], list[Answered]] = {}
    everyone, some = list(systems()), effort.of(40, 100)
    for task in TASKS:
        print(f"lists: {task}", file=sys.stderr, flush=True)
        asked = questions(task, SIZES, effort.of(40, 400), seed=SEED)
        shaping, other = (SAMPLED, GREEDY) if LANGUAGES[task].free else (GREEDY, SAMPLED)
        case, suffix = f"list_{task}", "greedy" if other.greedy else "sampled"
        for system in everyone:
            mine = asked if system.name in OFTEN else asked[:some]
            yield from _answered(case, system, mine, shaping, found)
            if system.name in BOTH_WAYS:
                yield from _answered(f"{case}_{suffix}", system, mine, other, found)
        oracle, exact = asked[: effort.of(6, 100)], OracleAdapter()
        for system in everyone:
            yield from _answered(f"oracle_{task}", system, oracle, shaping, found, exact)
        yield from _twin(case, asked, shaping)
        yield from time_rows(case, everyone, asked[: effort.of(2, 8)], shaping)
    yield from compared(found)


def _answered(
    case: str,
    system: System,
    asked: Sequence[ListQuestion],
    shaping: SamplingParams,
    found: dict[tuple[str, str], list[Answered]],
    oracle: ModelAdapter | None = None,
) -> Iterator[Row]:
    try:
        adapter = oracle or model(system.model)
        answers = answered(adapter, system.plugs(adapter.traits), asked, shaping)
    except (WeftError, Skipped) as error:
        yield Row(case, system.name, f"skipped: {error}", None, "")
        return
    found[case, system.name] = answers
    yield from answer_rows(case, system.name, answers)


def _twin(case: str, asked: Sequence[ListQuestion], shaping: SamplingParams) -> Iterator[Row]:
    try:
        yield from answer_rows(case, twin.NAME, twin.written(twin_network(), asked, shaping))
    except Skipped as reason:
        yield Row(case, twin.NAME, f"skipped: {reason}", None, "")


def answer_rows(case: str, system: str, answers: Sequence[Answered]) -> Iterator[Row]:
    """Shares and counts over all answers of a system."""
    kept = sum(one.counters.kept for one in answers)
    passes = sum(one.counters.forwards for one in answers)
    read = sum(one.counters.tokens for one in answers)
    yield Row(case, system, "validity", sum(a.valid for a in answers) / len(answers), "share")
    yield Row(case, system, "tokens_per_forward", per_forward(answers), "tokens")
    yield Row(case, system, "tokens_per_query_token", kept / read, "tokens")
    yield Row(case, system, "forwards", passes / len(answers), "forwards")
    yield Row(case, system, "answers", len(answers), "answers")


def compared(found: Mapping[tuple[str, str], Sequence[Answered]]) -> Iterator[Row]:
    """How the adaptive policy stands to one token a pass, over all operations."""
    gains, scores, rates = [], [], []
    for task in TASKS:
        mine, its = found.get((f"list_{task}", ADAPTIVE)), found.get((f"list_{task}", SEQUENTIAL))
        if mine is None or its is None:
            continue
        paired = [int(one.valid) - int(other.valid) for one, other in zip(mine, its, strict=True)]
        better, worse = paired.count(1), paired.count(-1)
        gains.append((better - worse) / len(paired))
        scores.append((better - worse) / math.sqrt(better + worse) if better + worse else 0.0)
        if not LANGUAGES[task].free:
            ratio = per_forward(mine) / per_forward(its)
            yield Row(f"list_{task}", ADAPTIVE, "ratio_to_sequential", ratio, "x")
            rates.append((per_forward(mine), ratio))
    if gains:
        yield Row("all_lists", ADAPTIVE, "worst_validity_gain", min(gains), "share")
        yield Row("all_lists", ADAPTIVE, "mean_validity_gain", sum(gains) / len(gains), "share")
        yield Row("all_lists", ADAPTIVE, "worst_z", min(scores), "standard errors")
    if rates:
        least, ratio = (min(column) for column in zip(*rates, strict=True))
        yield Row("independent_lists", ADAPTIVE, "least_tokens_per_forward", least, "tokens")
        yield Row("independent_lists", ADAPTIVE, "least_ratio_to_sequential", ratio, "x")


def per_forward(answers: Sequence[Answered]) -> float:
    """Tokens kept for each pass, over all answers."""
    passes = sum(one.counters.forwards for one in answers)
    return sum(one.counters.kept for one in answers) / passes
