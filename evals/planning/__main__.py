"""`python -m evals.planning [--quick] [--only A,B] [--json FILE] [--plot FILE]`."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict

from evals.planning.effort import FULL, QUICK
from evals.planning.plot import draw
from evals.planning.report import table
from evals.planning.sections import SECTIONS, rows_of
from evals.sectioned import arguments, surroundings
from weft.planner.prompt import PLAN_PROMPT_VERSION


def main() -> None:
    """Evaluate; print the table; write what was asked for."""
    asked = arguments(
        "planning",
        "What weft's planner is worth: orchestration, validity, quality, healing.",
        SECTIONS,
    )
    effort = QUICK if asked.quick else FULL
    rows = asyncio.run(rows_of(asked.only, effort))
    about = surroundings() | {"plan_prompt": PLAN_PROMPT_VERSION}
    print("\n" + ", ".join(f"{name} {value}" for name, value in about.items()) + "\n")
    print(table(rows))
    if asked.json:
        found = {"environment": about, "rows": [asdict(row) for row in rows]}
        asked.json.write_text(json.dumps(found, indent=1) + "\n")
    if asked.plot:
        draw(rows, asked.plot)


if __name__ == "__main__":
    main()
