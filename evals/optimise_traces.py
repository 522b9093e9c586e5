"""`python -m evals.optimise_traces [--quick] [--json FILE] [--plot FILE]`.

Knobs of a vote over recorded samples of Qwen3-8B (30 problems of AIME24 and of HMMT25, 128 samples
each), computed exactly and without a model call by `weft.optimisation.post_hoc`. Intervals are
those of a bootstrap over problems, the unit that was drawn: 30 of them leave them wide. Beside each
score are the figures of an earlier estimate by 100 random draws a problem, and of draws made here.

The data are not redistributed: without them the sections are skipped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, Final

from evals.engine.rows import Lookup, Row
from evals.planning.data import load
from evals.planning.effort import Skipped
from evals.results import environment, title, write_results
from weft.optimisation.post_hoc import (
    AnswerSample,
    PostHocKnobs,
    PostHocScore,
    SampledCase,
    case_score,
    front,
    grid,
    post_hoc,
)
from weft.reasoning.selection.vote import Vote, count_votes

SETS: Final = ("aime24", "hmmt25")
WIDTHS: Final = (1, 5, 9, 17, 33)
EARLIER: Final[Mapping[tuple[str, int], tuple[float, float, float]]] = {
    ("aime24", 1): (0.76, 14_000, 14_000),
    ("aime24", 5): (0.81, 20_000, 71_000),
    ("aime24", 9): (0.81, 23_000, 128_000),
    ("aime24", 33): (0.81, 28_000, 470_000),
    ("hmmt25", 1): (0.40, 0, 0),
    ("hmmt25", 9): (0.46, 0, 0),
    ("hmmt25", 17): (0.48, 0, 0),
    ("hmmt25", 33): (0.48, 0, 0),
}
"""Score, tokens of the longest sample, tokens of all; 0: not estimated then."""
_QUORUMS: Final = (2, 3, 5)
_CUTS: Final = (None, 8_000, 12_000, 16_000, 20_000)
_RESAMPLES: Final = 10_000
_PROBE_TOKENS: Final = 500


def cases_of(name: str) -> tuple[SampledCase, ...]:
    """The recorded problems of a set. Raises: `Skipped` where the data are not at hand."""
    return tuple(map(_case, load(f"reasoning/traces_qwen3_8b_{name}.json")))


def _case(problem: Mapping[str, Any]) -> SampledCase:
    return SampledCase(str(problem["gold"]), tuple(map(_sample, problem["branches"])))


def _sample(branch: Mapping[str, Any]) -> AnswerSample:
    tokens: int = branch["len"]
    probes = enumerate(branch["probes"], 1)
    known = tuple((at * _PROBE_TOKENS, str(answer)) for at, answer in probes)
    return AnswerSample(str(branch["final"]), tokens, known)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over problems, and where 95 % of the bootstrap's means lie."""

    mean: float
    low: float
    high: float


def bootstrap(values: Sequence[float], seed: int = 0) -> Interval:
    """The mean of one value a problem, with its percentile interval."""
    random = Random(seed)
    means = sorted(fmean(random.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    cut = _RESAMPLES // 40
    return Interval(fmean(values), means[cut], means[-cut - 1])


def rows(*, quick: bool = False) -> Iterator[Row]:
    """The rows of every set that is at hand; why, where one is not."""
    for name in SETS:
        try:
            yield from _rows(name, cases_of(name), quick=quick)
        except Skipped as reason:
            print(f"{name} is skipped: {reason}", file=sys.stderr, flush=True)
            yield Row(name, "", f"skipped: {reason}", None, "")


def _rows(name: str, cases: Sequence[SampledCase], *, quick: bool) -> Iterator[Row]:
    alone = [float(case_score(case, PostHocKnobs(1)).score) for case in cases]
    for width in WIDTHS:
        by_case = [case_score(case, PostHocKnobs(width)) for case in cases]
        scores = [float(each.score) for each in by_case]
        gains = [score - single for score, single in zip(scores, alone, strict=True)]
        system = f"w{width}"
        for metric, found in (("score", bootstrap(scores)), ("gain", bootstrap(gains))):
            for part in ("mean", "low", "high"):
                suffix = "" if part == "mean" else f"_{part}"
                yield Row(name, system, metric + suffix, getattr(found, part), "share")
        yield Row(name, system, "longest_tokens", _mean(by_case, "longest"), "tokens")
        yield Row(name, system, "total_tokens", _mean(by_case, "tokens"), "tokens")
        drawn = _drawn(cases, width, 100 if quick else 1_000)
        yield Row(name, system, "drawn_score", drawn, "share")
        if (name, width) in EARLIER:
            score, longest, total = EARLIER[name, width]
            yield Row(name, system, "earlier_score", score, "share")
            if total:
                yield Row(name, system, "earlier_longest_tokens", longest, "tokens")
                yield Row(name, system, "earlier_total_tokens", total, "tokens")
    yield from _front_rows(name, cases, quick=quick)
    yield Row(name, "all", "model_calls", 0, "calls")


def _mean(found: Sequence[PostHocScore], name: str) -> float:
    return fmean(float(getattr(each, name)) for each in found)


def _drawn(cases: Sequence[SampledCase], width: int, draws: int) -> float:
    """The score of random draws by weft's own vote; of equal leaders each has its share."""
    random = Random(width)
    total = 0.0
    for case in cases:
        for _ in range(draws):
            chosen = random.sample(case.samples, width)
            votes = [Vote(n, str(each.answer), each.tokens) for n, each in enumerate(chosen)]
            tallies = count_votes(votes)
            best = [each for each in tallies if len(each.votes) == len(tallies[0].votes)]
            total += sum(each.key == case.right for each in best) / len(best)
    return total / draws / len(cases)


def _front_rows(name: str, cases: Sequence[SampledCase], *, quick: bool) -> Iterator[Row]:
    """Every member of the front over widths, quorums and cuts, as a system of its own."""
    cuts = _CUTS[:2] if quick else _CUTS
    every = [
        *grid(range(1, 34, 8 if quick else 2), ("majority", "shortest"), cuts=cuts),
        *grid((5, 9, 17, 33), ("quorum",), _QUORUMS, cuts),
    ]
    found = [post_hoc(cases, knobs) for knobs in every]
    yield Row(name, "front", "knobs", len(found), "settings")
    members = front(found)
    yield Row(name, "front", "members", len(members), "settings")
    for member in members:
        system = f"front {label(member.knobs)}"
        yield Row(name, system, "score", float(member.score), "share")
        yield Row(name, system, "longest_tokens", float(member.longest), "tokens")
        yield Row(name, system, "total_tokens", float(member.tokens), "tokens")


def label(knobs: PostHocKnobs) -> str:
    """The knobs in one word: `majority9`, `quorum3of17@8000`."""
    vote = f"{knobs.quorum}of{knobs.width}" if knobs.rule == "quorum" else str(knobs.width)
    return f"{knobs.rule}{vote}" + (f"@{knobs.cut}" if knobs.cut is not None else "")


def table(found: Sequence[Row]) -> str:
    """One line a width: the exact score with its interval, beside drawn and earlier ones."""
    figures = Lookup(found)
    head = (
        f"{'set':8}{'width':>6}{'score':>8}{'95 %':>16}{'gain 95 %':>18}{'drawn':>8}{'earlier':>9}"
    )
    lines = [head + f"{'longest':>10}{'total':>10}"]
    for case in dict.fromkeys(row.case for row in found if row.value is not None):
        lines += [_line(figures, case, width) for width in WIDTHS]
        members = figures(case, "front", "members"), figures(case, "front", "knobs")
        lines.append(f"{case:8}front: {members[0]:.0f} of {members[1]:.0f} settings")
    lines += [f"{row.case} {row.metric}" for row in found if row.value is None]
    return "\n".join(lines)


def _line(figures: Lookup, case: str, width: int) -> str:
    system = f"w{width}"

    def value(metric: str) -> float:
        found = figures(case, system, metric)
        assert found is not None
        return found

    earlier = figures(case, system, "earlier_score")
    return (
        f"{case:8}{width:6}{value('score'):8.3f}"
        f"   {value('score_low'):.3f}..{value('score_high'):.3f}"
        f"   {value('gain_low'):+.3f}..{value('gain_high'):+.3f}"
        f"{value('drawn_score'):8.3f}{'' if earlier is None else f'{earlier:.2f}':>9}"
        f"{value('longest_tokens'):10,.0f}{value('total_tokens'):10,.0f}"
    )


def draw(found: Sequence[Row], path: Path) -> None:
    """Scores with their intervals over the tokens of all samples. Raises `ImportError`."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figures = Lookup(found)
    sets = list(dict.fromkeys(row.case for row in found if row.value is not None))
    figure, axes = plt.subplots(1, max(len(sets), 1), figsize=(11, 4.5), squeeze=False)
    for name, place in zip(sets, axes[0], strict=False):
        members = [s for s in dict.fromkeys(r.system for r in found if r.case == name) if " " in s]
        every = [[figures(name, s, m) for s in members] for m in ("total_tokens", "score")]
        place.plot(*every, "o", ms=3, alpha=0.6, label="front of all settings")
        for width in WIDTHS:
            system = f"w{width}"
            low, mean, high = (
                figures(name, system, metric) for metric in ("score_low", "score", "score_high")
            )
            assert low is not None
            assert mean is not None
            assert high is not None
            at = figures(name, system, "total_tokens")
            place.errorbar([at], [mean], [[mean - low], [high - mean]], fmt="s", capsize=3)
            place.annotate(f" {width}", (at, mean))
        place.set(xscale="log", xlabel="tokens of all samples", ylabel="score", title=name)
        place.legend(loc="lower right")
        place.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Compute; print the table; write what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m evals.optimise_traces", description="Post-hoc knobs of recorded samples."
    )
    parser.add_argument("--quick", action="store_true", help="fewer settings and draws")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the scores there")
    asked = parser.parse_args()
    found = list(rows(quick=asked.quick))
    about = environment()
    print(f"\n{title(about)}\n\n{table(found)}")
    if asked.json:
        write_results(asked.json, found, about)
    if asked.plot:
        draw(found, asked.plot)


if __name__ == "__main__":
    main()
