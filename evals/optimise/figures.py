"""Rows of all studies: by case and system, what was found, claimed and paid."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, median

from evals.engine.rows import Row
from evals.optimise.cases import PLANTED
from evals.optimise.studies import Study

_MARGIN = 0.02


def rows_of(studies: Iterable[Study]) -> list[Row]:
    """The rows of each case and system, and of the seed trap with a reflector of q = 0.2."""
    groups: dict[tuple[str, str], list[Study]] = defaultdict(list)
    for each in studies:
        groups[each.case, each.system].append(each)
        if each.case == "seed_trap" and each.q == 0.2:
            groups["seed_trap_q0.2", each.system].append(each)
    rows = [row for (case, system), own in groups.items() for row in _rows(case, system, own)]
    return [*rows, *_compared(rows)]


def _rows(case: str, system: str, studies: Sequence[Study]) -> Iterator[Row]:
    claimed = [each for each in studies if each.claimed]
    finite = [each.optimism for each in claimed if each.optimism == each.optimism]
    latency = case == "heavy_tail"
    figures = [
        ("studies", float(len(studies)), "studies"),
        ("found_share", fmean(each.found for each in studies), "share"),
        ("false_improved_share", fmean(each.false for each in studies), "share"),
        ("improved_share", len(claimed) / len(studies), "share"),
        ("worse_share", fmean(each.gain < -_MARGIN for each in studies), "share"),
        ("fresh_calls", float(median(each.calls for each in studies)), "calls"),
        ("most_calls", float(max(each.calls for each in studies)), "calls"),
        ("overruns", float(sum(each.overrun for each in studies)), "studies"),
        ("gain", fmean(each.gain_kept for each in studies), "s" if latency else "score"),
        ("room", fmean(each.room for each in studies), "s" if latency else "score"),
    ]
    if finite:
        figures.append(("optimism", fmean(finite), "s" if latency else "score"))
    yield from (Row(case, system, metric, value, unit) for metric, value, unit in figures)


def _compared(rows: Sequence[Row]) -> Iterator[Row]:
    """weft beside the best of the others, by found share; its calls over that one's."""
    values = {(row.case, row.system, row.metric): row.value or 0.0 for row in rows}
    for case in PLANTED:
        others = sorted({row.system for row in rows if row.case == case} - {"weft"})
        others = [each for each in others if not each.endswith("_as_published")]
        if not others:
            continue
        found = values[case, "weft", "found_share"]
        best = max(values[case, each, "found_share"] for each in others)
        leaders = [each for each in others if values[case, each, "found_share"] == best]
        fewest = min(values[case, each, "fresh_calls"] for each in leaders)
        calls = values[case, "weft", "fresh_calls"]
        gain = max(values[case, each, "gain"] for each in others)
        yield Row(case, "best_other", "found_share", best, "share")
        yield Row(case, "best_other", "fresh_calls", fewest, "calls")
        yield Row(case, "weft", "found_over_best_other", found - best, "share")
        yield Row(case, "weft", "calls_over_best_other", calls / fewest, "x")
        yield Row(case, "weft", "gain_over_best_other", values[case, "weft", "gain"] - gain, "")
