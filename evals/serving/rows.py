"""What was played as rows of one shape, and the statistics that make them. Runs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median, quantiles

from evals.engine.rows import Row
from evals.serving.replay import Played
from evals.serving.traffic import KINDS

CASE = "agent_traffic"
REFERENCE = "plain"
LATENCIES = (
    "mean_program_latency_s",
    "p50_program_latency_s",
    "p95_program_latency_s",
    "p99_program_latency_s",
)
_COMPARED = (*LATENCIES, "makespan_s", "server_prompt_tokens", "server_answer_tokens")

Figures = Mapping[str, tuple[float, str]]


def percentile(samples: Sequence[float], percent: int) -> float:
    """Interpolated between the samples, which all lie within the range."""
    if len(samples) < 2:
        return samples[0]
    return quantiles(samples, n=100, method="inclusive")[percent - 1]


def figures(played: Played) -> Figures:
    """The metrics of one round of one system, each with its unit."""
    latencies = list(played.latencies_s.values())
    counted = played.counted
    written = counted.generation_tokens
    cached = counted.prefix_cache_hits / max(1.0, counted.prefix_cache_queries)
    found = {
        "mean_program_latency_s": (fmean(latencies), "s"),
        **{
            f"p{percent}_program_latency_s": (percentile(latencies, percent), "s")
            for percent in (50, 95, 99)
        },
        "makespan_s": (played.makespan_s, "s"),
        "tokens_per_s": (played.used_tokens / played.makespan_s, "tokens/s"),
        "prefix_hit_rate": (cached, "share"),
        "server_prompt_tokens": (
            counted.prefix_cache_queries - counted.prefix_cache_hits,
            "tokens computed",
        ),
        "server_answer_tokens": (written, "tokens"),
        "wasted_tokens": (written - played.used_tokens, "tokens"),
        "preemptions": (counted.num_preemptions, "requests"),
        "requests": (len(played.record.outputs), "answers"),
        "backlog": (played.backlog, "programs"),
    }
    by_id = played.latencies_s
    for kind in KINDS:
        own = [by_id[program.id] for program in played.trace if program.kind == kind]
        if own:
            found[f"{kind}_mean_latency_s"] = (fmean(own), "s")
    return found


def equal_outputs(one: Played, other: Played) -> float:
    """The share of calls, of those that both completed, whose answers are the same ids."""
    mine, theirs = one.record.outputs, other.record.outputs
    both = mine.keys() & theirs.keys()
    return sum(mine[call] == theirs[call] for call in both) / len(both) if both else 0.0


def round_rows(case: str, rounds: Sequence[Mapping[str, Played]]) -> list[Row]:
    """Medians over the rounds of each system, and of its ratio to `plain` in the same round.

    `_least` and `_most` are the extremes over the rounds of the ratios, `_round_1` and so on are
    all of them.
    """
    rows: list[Row] = []
    for system in dict.fromkeys(name for one in rounds for name in one):
        own = [(figures(one[system]), one) for one in rounds if system in one]
        for metric, (_, unit) in own[0][0].items():
            values = [found[metric][0] for found, _ in own if metric in found]
            rows.append(Row(case, system, metric, median(values), unit))
        rows.append(Row(case, system, "rounds", len(own), "rounds"))
        if system == REFERENCE:
            continue
        beside = [(found, one[system], one[REFERENCE]) for found, one in own if REFERENCE in one]
        equal = [equal_outputs(mine, plain) for _, mine, plain in beside]
        if not equal:
            continue
        rows.append(Row(case, system, "outputs_equal", min(equal), "share of answers"))
        for metric in _COMPARED:
            pairs = [(found[metric][0], figures(plain)[metric][0]) for found, _, plain in beside]
            rows += _ratios(case, system, metric, [mine / plain for mine, plain in pairs])
    return rows


def _ratios(case: str, system: str, metric: str, ratios: Sequence[float]) -> list[Row]:
    name, unit = f"{metric}_ratio", f"x {REFERENCE}"
    each = enumerate(ratios, 1)
    return [
        Row(case, system, name, median(ratios), unit),
        Row(case, system, f"{name}_least", min(ratios), unit),
        Row(case, system, f"{name}_most", max(ratios), unit),
        *(Row(case, system, f"{name}_round_{number}", ratio, unit) for number, ratio in each),
    ]


def latency_rows(rounds: Sequence[Mapping[str, Played]]) -> list[Row]:
    """Every program's latency of the systems in all rounds, for the plot; sorted."""
    rows = []
    for system in dict.fromkeys(name for one in rounds for name in one):
        found = sorted(
            value for one in rounds if system in one for value in one[system].latencies_s.values()
        )
        rows += [
            Row("program_latency", system, str(n), value, "s") for n, value in enumerate(found)
        ]
    return rows
