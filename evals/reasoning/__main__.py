"""`python -m evals.reasoning [--quick] [--only A,B] [--json FILE] [--plot FILE]`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from evals.planning.effort import FULL, QUICK
from evals.reasoning.plot import draw
from evals.reasoning.report import report
from evals.reasoning.sections import SECTIONS, found_by
from weft import __version__


def main() -> None:
    """Evaluate; print the tables; write what was asked for."""
    arguments = _arguments()
    effort = QUICK if arguments.quick else FULL
    found = asyncio.run(found_by(arguments.only, effort))
    about = surroundings()
    print("\n" + ", ".join(f"{name} {value}" for name, value in about.items()) + "\n")
    print(report(found))
    if arguments.json:
        rows = [asdict(row) for _, rows in found for row in rows]
        arguments.json.write_text(json.dumps({"environment": about, "rows": rows}, indent=1) + "\n")
    if arguments.plot and not draw(found, arguments.plot):
        print("nothing was measured that can be drawn", file=sys.stderr)


def surroundings() -> Mapping[str, str]:
    """When and on what the figures were taken; models stand in the rows."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "weft": __version__,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m evals.reasoning",
        description="What parallel reasoning is worth: votes, protocols, equal budgets, speed.",
    )
    parser.add_argument("--quick", action="store_true", help="fewer tasks, within minutes")
    parser.add_argument(
        "--only",
        type=_names,
        default=SECTIONS,
        metavar="A,B",
        help=f"only these of: {', '.join(SECTIONS)}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the main figures there")
    return parser.parse_args()


def _names(text: str) -> Sequence[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"there is no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}"
        )
    return names


if __name__ == "__main__":
    main()
