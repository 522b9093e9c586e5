"""`python -m evals.planning [--quick] [--only A,B] [--json FILE] [--plot FILE]`."""

from __future__ import annotations

import asyncio

from evals.planning.effort import FULL, QUICK
from evals.planning.plot import draw
from evals.planning.report import table
from evals.planning.sections import SECTIONS, rows_of
from evals.planning.skills.options import add_arguments, options_of
from evals.results import environment, title, write_results
from evals.sectioned import arguments
from weft.planner.prompt import PLAN_PROMPT_VERSION


def main() -> None:
    """Evaluate; print the table; write what was asked for."""
    asked = arguments(
        "planning",
        "What weft's planner is worth: orchestration, validity, quality, healing.",
        SECTIONS,
        add_arguments,
    )
    effort = QUICK if asked.quick else FULL
    rows = asyncio.run(rows_of(asked.only, effort, skills=options_of(asked)))
    about = environment(plan_prompt=PLAN_PROMPT_VERSION)
    print(f"\n{title(about)}\n")
    print(table(rows))
    if asked.json:
        write_results(asked.json, rows, about)
    if asked.plot:
        draw(rows, asked.plot)


if __name__ == "__main__":
    main()
