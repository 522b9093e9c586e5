"""`python -m evals.optimise [--quick] [--only CASES] [--json FILE] [--plot FILE] [--jobs N]`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Final

from evals.engine.rows import Lookup, Row
from evals.optimise.cases import PLANTED
from evals.optimise.extra import front_share, race_gain, reuse_share
from evals.optimise.figures import rows_of
from evals.optimise.proposers import proposer_rows
from evals.optimise.structures import structure_rows
from evals.optimise.studies import SYSTEMS, Study, all_systems
from evals.results import environment, title, write_results
from evals.sectioned import arguments

_STRUCTURES: Final = "structures"
_PROPOSERS: Final = "proposers"


def main() -> None:
    """Run the studies; print the table; write what was asked for."""
    sections = [*PLANTED, _STRUCTURES, _PROPOSERS]
    asked = arguments("optimise", "Searches on planted optima.", sections, _more)
    cases = [case for case in asked.only if case in PLANTED]
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # the processes are the parallelism
        os.environ.setdefault(name, "1")
    studies, extra = (12, 8) if asked.quick else (asked.studies, 40)
    about = environment(("numpy",))
    with ProcessPoolExecutor(asked.jobs, get_context("spawn")) as pool:
        found: list[Study] = []
        for case in cases:
            begun = time.monotonic()
            numbers = range(asked.first_seed, asked.first_seed + studies)
            for some in pool.map(partial(all_systems, case, studies, asked.first_seed), numbers):
                found += some
            if asked.json:  # a run that is stopped leaves the cases that it has ended
                write_results(asked.json, rows_of(found), about)
            print(f"{case} took {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        rows = rows_of(found)
        rows += _extra_rows(pool.map, cases, asked.first_seed, extra) if cases else []
        if _PROPOSERS in asked.only:
            rows += proposer_rows(pool.map, asked.first_seed, studies)
    rows += structure_rows(extra) if _STRUCTURES in asked.only else []
    print(f"\n{title(about)}\n")
    print(_table(rows))
    if asked.json:
        write_results(asked.json, rows, about)
    if asked.plot:
        _draw(rows, asked.plot)


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--studies", type=int, default=200, help="studies a case and system")
    parser.add_argument("--first-seed", type=int, default=0, help="of the first study of a case")
    parser.add_argument("--jobs", type=int, default=2, help="processes")


def _extra_rows(
    apply: Callable[..., Iterable[tuple[float, float]]],
    cases: Iterable[str],
    first: int,
    studies: int,
) -> Iterator[Row]:
    shares = list(apply(front_share, range(first, first + studies)))
    races = list(apply(race_gain, range(first, first + studies)))
    yield Row("additive", "weft", "hypervolume_share", fmean(one for one, _ in shares), "share")
    yield Row("additive", "weft", "hypervolume_calls", fmean(one for _, one in shares), "share")
    gains = [fmean(column) for column in zip(*races, strict=True)]
    yield Row("additive", "race", "gain_at_0.4", gains[0], "score")
    yield Row("additive", "full_grid", "gain", gains[1], "score")
    for case in cases:
        numbers = range(first, first + max(1, studies // 4))
        ratios = [reuse_share(case, number) for number in numbers]
        yield Row(case, "weft", "calls_over_no_reuse", fmean(ratios), "x")


def _table(rows: list[Row]) -> str:
    figures = Lookup(rows)
    lines = [
        f"{'case':18}{'system':26}{'found':>7}{'false':>7}{'calls':>8}{'gain':>8}{'optimism':>9}"
    ]
    for case, system in figures.of("studies"):
        values = [
            figures(case, system, metric)
            for metric in ("found_share", "false_improved_share", "fresh_calls", "gain", "optimism")
        ]
        shown = [float("nan") if each is None else each for each in values]
        lines.append(
            f"{case:18}{system:26}{shown[0]:7.3f}{shown[1]:7.3f}{shown[2]:8,.0f}"
            f"{shown[3]:+8.3f}{shown[4]:+9.3f}"
        )
    for metric in ("found_over_best_other", "calls_over_best_other", "calls_over_no_reuse"):
        told = (f"{case} {value:.3f}" for (case, _), value in figures.of(metric).items())
        lines.append(f"{metric}: {', '.join(told)}")
    lines += [
        f"{row.system} {row.metric}: {row.value:.3f}"
        for row in rows
        if row.metric.startswith("hypervolume") or row.system in ("race", "full_grid")
    ]
    lines += [
        f"{row.case} {row.system} {row.metric}: {row.value:.3f}"
        for row in rows
        if row.case in ("structure", "formats") or row.case.startswith("prompt_trap")
    ]
    return "\n".join(lines)


def _draw(rows: list[Row], path: Path) -> None:
    """Found share against fresh calls, a panel for each case. Needs matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figures = Lookup(rows)
    cases = [case for case in PLANTED if figures(case, "weft", "found_share") is not None]
    figure, axes = plt.subplots(
        1, len(cases), figsize=(2.6 * len(cases), 3.2), layout="constrained", squeeze=False
    )
    for case, place in zip(cases, axes[0], strict=True):
        for system in SYSTEMS:
            calls, found = (figures(case, system, each) for each in ("fresh_calls", "found_share"))
            place.plot([calls], [found], "o", label=system, markersize=7)
        place.set(title=case, xlabel="fresh calls", ylim=(-0.05, 1.05), xlim=(0, 13_000))
    axes[0][0].set_ylabel("share of studies that found it")
    axes[0][-1].legend(fontsize=7)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
