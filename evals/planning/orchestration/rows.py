"""What was measured as rows of one shape, and the statistics that make them. Runs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Final

from evals.engine.rows import Row, spread
from evals.planning.orchestration.measuring import Measured

REFERENCES: Final = ("react_text", "react", "llmcompiler_loop")
"""The first is the baseline of the headline: the leanest of the sequential agents."""

Results = Mapping[str, Sequence[Measured]]
"""For each system one run for each task, in the order of the tasks."""


def latency_rows(case: str, results: Results) -> list[Row]:
    """Latency with its spread, calls and tokens of each system, and how it stands to others."""
    rows: list[Row] = []
    for system, runs in results.items():
        latencies = [run.latency_s for run in runs]
        low, high = spread(latencies)
        for metric, value, unit in (
            ("median_latency_s", median(latencies), "s"),
            ("p10_latency_s", low, "s"),
            ("p90_latency_s", high, "s"),
            ("mean_latency_s", fmean(latencies), "s"),
            ("model_calls", fmean(run.model_calls for run in runs), "calls a task"),
            ("tool_calls", fmean(run.tool_calls for run in runs), "calls a task"),
            ("prompt_tokens", fmean(run.prompt_tokens for run in runs), "tokens a task"),
            ("completion_tokens", fmean(run.completion_tokens for run in runs), "tokens a task"),
            (
                "tokens",
                fmean(run.prompt_tokens + run.completion_tokens for run in runs),
                "tokens a task",
            ),
            ("tasks", len(runs), "tasks"),
        ):
            rows.append(Row(case, system, metric, value, unit))
    return [*rows, *speedup_rows(case, results)]


def speedup_rows(case: str, results: Results) -> Iterator[Row]:
    """How many times faster than the references, task by task: median, spread, and the least."""
    for system, runs in results.items():
        for other in REFERENCES:
            if other == system or other not in results:
                continue
            ratios = [
                theirs.latency_s / own.latency_s
                for own, theirs in zip(runs, results[other], strict=True)
            ]
            low, high = spread(ratios)
            for suffix, value in (
                ("", median(ratios)),
                ("_p10", low),
                ("_p90", high),
                ("_least", min(ratios)),
            ):
                yield Row(case, system, f"speedup_to_{other}{suffix}", value, f"x {other}")
