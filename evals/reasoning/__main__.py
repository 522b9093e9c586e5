"""`python -m evals.reasoning [--quick] [--only A,B] [--json FILE] [--plot FILE]`."""

from __future__ import annotations

import asyncio
import sys

from evals.planning.effort import FULL, QUICK
from evals.reasoning.live.terms import add_arguments, terms_of
from evals.reasoning.plot import draw
from evals.reasoning.report import report
from evals.reasoning.sections import SECTIONS, found_by
from evals.results import environment, title, write_results
from evals.sectioned import arguments


def main() -> None:
    """Evaluate; print the tables; write what was asked for."""
    asked = arguments(
        "reasoning",
        "What parallel reasoning is worth: votes, protocols, equal budgets, speed.",
        SECTIONS,
        add_arguments,
    )
    effort = QUICK if asked.quick else FULL
    found = asyncio.run(found_by(asked.only, effort, terms_of(asked)))
    about = environment()
    print(f"\n{title(about)}\n")
    print(report(found))
    if asked.json:
        write_results(asked.json, (row for _, rows in found for row in rows), about)
    if asked.plot and not draw(found, asked.plot):
        print("nothing was measured that can be drawn", file=sys.stderr)


if __name__ == "__main__":
    main()
