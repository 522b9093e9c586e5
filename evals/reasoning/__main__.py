"""`python -m evals.reasoning [--quick] [--only A,B] [--json FILE] [--plot FILE]`."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict

from evals.planning.effort import FULL, QUICK
from evals.reasoning.plot import draw
from evals.reasoning.report import report
from evals.reasoning.sections import SECTIONS, found_by
from evals.sectioned import arguments, surroundings


def main() -> None:
    """Evaluate; print the tables; write what was asked for."""
    asked = arguments(
        "reasoning",
        "What parallel reasoning is worth: votes, protocols, equal budgets, speed.",
        SECTIONS,
    )
    effort = QUICK if asked.quick else FULL
    found = asyncio.run(found_by(asked.only, effort))
    about = surroundings()
    print("\n" + ", ".join(f"{name} {value}" for name, value in about.items()) + "\n")
    print(report(found))
    if asked.json:
        rows = [asdict(row) for _, rows in found for row in rows]
        asked.json.write_text(json.dumps({"environment": about, "rows": rows}, indent=1) + "\n")
    if asked.plot and not draw(found, asked.plot):
        print("nothing was measured that can be drawn", file=sys.stderr)


if __name__ == "__main__":
    main()
