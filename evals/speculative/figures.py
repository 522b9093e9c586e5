"""The rows of one system in one case, from what its answers took beside plain decoding's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from evals.engine.rows import Row
from evals.speculative.looping import LOOPS, distinct, repeated
from evals.speculative.statistics import interval
from evals.speculative.taken import Taken, Together

PLAIN: Final = "autoregressive"
_DEPTHS: Final = (1, 2, 3, 4, 6, 8)


def plain_rows(case: str, answers: Sequence[Taken]) -> list[Row]:
    """What plain decoding took, and how much its texts repeat themselves."""
    together = Together(answers)
    loops = [repeated(one.tokens) for one in answers]
    return [
        Row(case, PLAIN, "prompts", len(answers), "prompts"),
        Row(case, PLAIN, "tokens_per_target_forward", together.tokens_per_forward, "tokens"),
        Row(case, PLAIN, "tokens_per_s", together.tokens / together.seconds, "tokens/s"),
        Row(case, PLAIN, "distinct_3", _mean(distinct(one.tokens) for one in answers), "share"),
        Row(case, PLAIN, "repeated_8", _mean(loops), "share"),
        Row(case, PLAIN, "looping", sum(share > LOOPS for share in loops), "prompts"),
    ]


def method_rows(
    case: str, system: str, plain: Sequence[Taken], answers: Sequence[Taken]
) -> list[Row]:
    """What a method took for the same prompts, in the same order. Ratios above 1 are faster."""
    together, compared = Together(answers), Together(plain)
    ratios = [slow.seconds / one.seconds for slow, one in zip(plain, answers, strict=True)]
    low, high = interval(ratios)
    same = [slow.tokens == one.tokens for slow, one in zip(plain, answers, strict=True)]
    figures = {
        "identical_outputs": (_mean(same), "share"),
        "tokens_per_target_forward": (together.tokens_per_forward, "tokens"),
        "accepted_length": (together.accepted_length, "tokens"),
        "draft_forwards_per_token": (_sum(answers, "draft_forwards") / together.tokens, "passes"),
        "drafted_per_token": (_sum(answers, "drafted") / together.tokens, "tokens"),
        "proposal_ms": (1000 * _sum(answers, "proposal_s") / together.forwards, "ms a step"),
        "wall_ratio": (median(ratios), "x"),
        "wall_ratio_low": (low, "x"),
        "wall_ratio_high": (high, "x"),
        "wall_ratio_total": (compared.seconds / together.seconds, "x"),
    }
    found = [Row(case, system, name, value, unit) for name, (value, unit) in figures.items()]
    for depth in _DEPTHS:
        if depth <= len(together.chances):
            chance = together.chances[depth - 1]
            found.append(Row(case, system, f"acceptance_at_{depth}", chance, "share"))
    steady = [one for one in answers if repeated(one.tokens) <= LOOPS]
    if steady and len(steady) < len(answers):
        without = Together(steady).tokens_per_forward
        found.append(Row(case, system, "tokens_per_target_forward_no_loops", without, "tokens"))
    fallen = [one.fallback for one in answers if one.fallback]
    if fallen:
        found.append(Row(case, system, f"fell back: {fallen[0]}", len(fallen), "prompts"))
    return found


def _sum(answers: Sequence[Taken], name: str) -> float:
    return float(sum(getattr(one, name) for one in answers))


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
