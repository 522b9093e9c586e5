"""The table of docs/optimise.md that says how many cases are enough is that of the program."""

from __future__ import annotations

import re

from tests.docs.pages import DOCS
from weft.evaluation.statistics import detectable_difference
from weft.optimisation.data_size import cases_for
from weft.optimisation.decide import DISCORDANCE, LEAST_CASES

HELD_OUT = (LEAST_CASES, 60, 100, 150, 300, 600)


def test_the_numbers_of_cases_are_those_of_the_program() -> None:
    page = (DOCS / "optimise.md").read_text("utf-8")
    table = re.search(
        r"<!--given by tests/docs/test_case_numbers\.py-->\n(.*?)<!--/-->", page, re.S
    )
    assert table is not None
    lines = [
        f"| {cases_for(held_out):,} | {held_out} | {detectable_difference(held_out, DISCORDANCE):.2f} |"
        for held_out in HELD_OUT
    ]
    assert table[1].splitlines()[2:] == lines
    assert f"**about {cases_for()} cases**" in page
