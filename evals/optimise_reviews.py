"""`python -m evals.optimise_reviews [--quick] [--studies N] [--json FILE]`.

Studies of the example that `weft init --example reviews` writes: a classifier of real reviews on
the embedded model, with its own knobs and budget, through `weft.optimise`. Studies differ in the
seed of their search; the splits, and so the held-out cases, are those of the data: that studies
agree says nothing about other data.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import weft
from evals.engine.rows import Row
from evals.results import environment, title, write_results
from weft.cli.main import app

STUDIES: Final = 5
CASE: Final = "reviews"
_UNITS: Final = {"quality": "share", "cost_usd": "usd", "tokens": "tokens"}


def studies(count: int, folder: Path) -> Iterator[weft.StudyResult]:
    """The studies, each unrecorded; the example is written to `folder`."""
    app(["init", str(folder), "--example", "reviews"], standalone_mode=False)
    for seed in range(count):
        flow = weft.load(folder / "workflow.yaml")
        yield weft.optimise_sync(flow, seed=seed, journal=folder / f"study{seed}.db")


def rows(found: Sequence[weft.StudyResult]) -> Iterator[Row]:
    """Of each study, by number, and how many of them found an improvement."""
    for number, study in enumerate(found):
        yield from study_rows(f"{CASE}_{number}", study)
    yield Row(CASE, "study", "studies", len(found), "studies")
    share = sum(study.improved for study in found) / len(found)
    yield Row(CASE, "study", "improved_share", share, "share")


def study_rows(case: str, study: weft.StudyResult) -> Iterator[Row]:
    """The figures of the workflow as it was and of the best one, and those of the study.

    Where nothing was shown, the best one is the workflow as it was; `first` is then the front's
    first candidate. The verdict and edits are rows by name, with the value 1.
    """
    systems = {"baseline": study.baseline, "best": study.best}
    if not study.improved and study.front:
        systems["first"] = study.front[0]
    for system, member in systems.items():
        for figure in member.figures:
            yield from _figure_rows(case, system, figure)
        for edit in member.edits:
            yield Row(case, system, f"edit: {edit.label}", 1, "edits")
    about = {
        str(study.verdict): (1.0, "verdict"),
        "p": (study.verdict.p, "p"),
        "detectable": (study.verdict.detectable, "share"),
        "held_out": (float(study.verdict.cases), "cases"),
        "looks": (float(study.verdict.looks), "looks"),
        "candidates": (float(study.candidates), "candidates"),
        "calls": (float(study.spent.calls), "calls"),
        "wall": (study.wall_s, "s"),
    }
    for metric, (value, unit) in about.items():
        if value is not None:
            yield Row(case, "study", metric, value, unit)


def _figure_rows(case: str, system: str, figure: Any) -> Iterator[Row]:
    """A figure; of other workflows than the baseline its change as well."""
    if figure.value is None:
        return
    name, unit = figure.name, _UNITS.get(figure.name, "s")
    yield Row(case, system, name, figure.value, unit)
    yield Row(case, system, f"{name}_cases", figure.cases, "cases")
    yield Row(case, system, f"{name}_{figure.source}", 1, "source")
    if system != "baseline":
        for edge in ("change", "low", "high"):
            yield Row(case, system, f"{name}_{edge}", getattr(figure, edge), unit)


def main() -> int:
    """Run the studies, and write what they found."""
    parser = argparse.ArgumentParser(prog="python -m evals.optimise_reviews", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one study")
    parser.add_argument("--studies", type=int, default=STUDIES, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    asked = parser.parse_args()
    about = environment()
    print(title(about))
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for study in studies(1 if asked.quick else asked.studies, Path(folder)):
            found.append(study)
            was, now = study.baseline.scores["quality"], study.best.scores["quality"]
            edits = "; ".join(edit.label for edit in study.best.edits) or "as it was"
            print(f"{study.verdict}: {was:.3f} -> {now:.3f}, {study.wall_s:.0f} s, {edits}")
    made = list(rows(found))
    if asked.json is not None:
        write_results(asked.json, made, about)
    return 0


if __name__ == "__main__":
    sys.exit(main())
