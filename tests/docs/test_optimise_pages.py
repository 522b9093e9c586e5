"""Figures of the pages on `weft optimise` are those of the program, and of the measured studies."""

from __future__ import annotations

import json
import re

from tests.docs.pages import DOCS
from weft.cli.studies.report import number
from weft.evaluation.statistics import detectable_difference
from weft.optimisation.data_size import cases_for
from weft.optimisation.decide import DISCORDANCE, LEAST_CASES

HELD_OUT = (LEAST_CASES, 60, 100, 150, 300, 600)


def test_the_numbers_of_cases_are_those_of_the_program() -> None:
    page = (DOCS / "optimise.md").read_text("utf-8")
    table = re.search(
        r"<!--given by tests/docs/test_optimise_pages\.py-->\n(.*?)<!--/-->", page, re.DOTALL
    )
    assert table is not None
    lines = []
    for count in HELD_OUT:
        seen = detectable_difference(count, DISCORDANCE)
        lines.append(f"| {cases_for(count):,} | {count} | {seen:.2f} |")
    assert table[1].splitlines()[2:] == lines
    assert f"**about {cases_for()} cases**" in page


def test_the_figures_of_the_tutorial_are_those_of_the_measured_study() -> None:
    rows = json.loads((DOCS / "benchmarks/optimise_reviews.json").read_text("utf-8"))["rows"]
    found = {
        (row["system"], row["metric"]): row["value"] for row in rows if row["case"] == "reviews_0"
    }
    told = [
        f"{name} {number(name, found['baseline', name])} -> {number(name, found['best', name])}"
        for name in ("quality", "p95_s")
    ]
    low, high = (found["best", f"quality_{end}"] for end in ("low", "high"))
    lines = (
        f"improved: {'; '.join(told)}; ",
        f", p {found['study', 'p']:.2g} on {found['study', 'held_out']:.0f} held-out cases",
        f" {found['best', 'quality_change']:+.3f} ({low:+.3f} to {high:+.3f}) ",
    )
    page = (DOCS / "tutorials/optimise.md").read_text("utf-8")
    assert all(line in page for line in lines), lines
