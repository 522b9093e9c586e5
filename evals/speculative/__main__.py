"""`python -m evals.speculative [--quick] [--only A,B] [--json FILE] [--plot FILE]`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from evals.reasoning.plot import draw
from evals.reasoning.report import report
from evals.sectioned import arguments, surroundings
from evals.speculative.sections import SECTIONS, found_by, module


def main() -> None:
    """Evaluate; print the tables; write what was asked for."""
    asked = arguments(
        "speculative",
        "Several tokens a step: passes, accepted tokens and time, against plain decoding.",
        SECTIONS,
    )
    found = found_by(asked.only, quick=asked.quick)
    about = surroundings()
    print("\n" + ", ".join(f"{name} {value}" for name, value in about.items()) + "\n")
    print(report(found, module))
    if asked.json:
        rows = [asdict(row) for _, rows in found for row in rows]
        asked.json.write_text(json.dumps({"environment": about, "rows": rows}, indent=1) + "\n")
    if asked.plot and not draw(found, asked.plot, module):
        print("nothing was measured that can be drawn", file=sys.stderr)


if __name__ == "__main__":
    main()
