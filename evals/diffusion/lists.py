"""The list operations: valid answers and tokens a pass of every preset, beside one token a pass.

Operations with one valid answer are asked greedily (`list_copy`), those with several are drawn at
temperature 1 (`list_shuffle`): only then is every valid answer a right one. The others of the two
are asked too, as `list_copy_sampled` and `list_shuffle_greedy`, of fewer systems. `oracle_NAME` is
the same with exact marginals instead of the trained model: what is wrong there is the policy's
doing. All systems answer the same questions, from the same seeds; the items of a question were
held out of training.

`wall_ratio` is one token a pass over the system's time, `wall_to_twin` that of the autoregressive
twin with its cache: medians over questions asked alone, all systems in turn.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any, Final

from evals.diffusion import twin
from evals.diffusion.asking import Answered, answered, questions, timed
from evals.diffusion.models import adapter as model
from evals.diffusion.models import twin as twin_network
from evals.diffusion.systems import SEQUENTIAL, System, systems
from evals.engine.rows import Row
from evals.planning.effort import Effort, Skipped
from evals.reasoning.report import Target
from weft.core.errors import WeftError
from weft.decoding.diffusion.adapter import ModelAdapter
from weft.decoding.diffusion.oracle.adapter import OracleAdapter
from weft.decoding.diffusion.oracle.languages import LANGUAGES
from weft.decoding.diffusion.oracle.question import Question
from weft.decoding.speculative.law import Shaping

TASKS: Final = tuple(LANGUAGES)
SIZES: Final = (3, 4, 5, 6)
SEED: Final = 7
"""Of the questions; no setting of any policy was chosen by looking at these."""
GREEDY, SAMPLED = Shaping(0.0), Shaping(1.0)
ADAPTIVE: Final = "adaptive"
BOTH_WAYS: Final = (SEQUENTIAL, "threshold_0.9", ADAPTIVE)
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
    for task in TASKS:
        print(f"lists: {task}", file=sys.stderr, flush=True)
        asked = questions(task, SIZES, effort.of(40, 400), seed=SEED)
        shaping, other = (SAMPLED, GREEDY) if LANGUAGES[task].free else (GREEDY, SAMPLED)
        case = f"list_{task}"
        yield from _case(case, asked, shaping, list(systems()), found)
        few = [one for one in systems() if one.name in BOTH_WAYS]
        suffix = "greedy" if other.greedy else "sampled"
        yield from _case(f"{case}_{suffix}", asked, other, few, found)
        oracle = asked[: effort.of(6, 100)]
        yield from _case(f"oracle_{task}", oracle, shaping, list(systems()), found, OracleAdapter())
        yield from _timed(case, asked[: effort.of(2, 10)], shaping)
    yield from _in_all(found)


def _case(
    case: str,
    asked: Sequence[Question],
    shaping: Shaping,
    wanted: Sequence[System],
    found: dict[tuple[str, str], list[Answered]],
    oracle: ModelAdapter | None = None,
) -> Iterator[Row]:
    for system in wanted:
        try:
            adapter = oracle or model(system.model)
            answers = answered(adapter, system.plugs(adapter.traits), asked, shaping)
        except (WeftError, Skipped) as error:
            yield Row(case, system.name, f"skipped: {error}", None, "")
            continue
        found[case, system.name] = answers
        yield from answer_rows(case, system.name, answers)


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


def _timed(case: str, asked: Sequence[Question], shaping: Shaping) -> Iterator[Row]:
    """All systems in turn, question by question."""
    ready = {}
    for system in systems():
        try:
            adapter = model(system.model)
            ready[system.name] = adapter, system.plugs(adapter.traits)
        except (WeftError, Skipped):
            continue
    seconds: dict[str, list[float]] = {name: [] for name in (*ready, twin.NAME)}
    for number, question in enumerate(asked):
        for name, (adapter, plugs) in ready.items():
            try:
                seconds[name].append(timed(adapter, plugs, question, shaping, number).seconds)
            except WeftError:
                continue
        try:
            answer = twin.written(twin_network(), question, shaping, number)
            seconds[twin.NAME].append(answer.seconds)
        except Skipped:
            continue
    for name, taken in seconds.items():
        for metric, other in (("wall_ratio", SEQUENTIAL), ("wall_to_twin", twin.NAME)):
            pairs = list(zip(seconds.get(other, ()), taken, strict=False))
            if pairs:
                yield Row(case, name, metric, median(a / b for a, b in pairs), "x")


def _in_all(found: Mapping[tuple[str, str], Sequence[Answered]]) -> Iterator[Row]:
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
