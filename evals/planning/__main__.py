"""`python -m evals.planning [--quick] [--only A,B] [--json FILE] [--plot FILE]`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from evals.planning.effort import FULL, QUICK
from evals.planning.plot import draw
from evals.planning.report import table
from evals.planning.sections import SECTIONS, rows_of
from weft import __version__
from weft.planner.prompt import PLAN_PROMPT_VERSION


def main() -> None:
    """Evaluate; print the table; write what was asked for."""
    arguments = _arguments()
    effort = QUICK if arguments.quick else FULL
    rows = asyncio.run(rows_of(arguments.only, effort))
    about = surroundings()
    print("\n" + ", ".join(f"{name} {value}" for name, value in about.items()) + "\n")
    print(table(rows))
    if arguments.json:
        found = {"environment": about, "rows": [asdict(row) for row in rows]}
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    if arguments.plot:
        draw(rows, arguments.plot)


def surroundings() -> Mapping[str, str]:
    """When, on what and with which prompt the figures were taken; models stand in the rows."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "weft": __version__,
        "plan_prompt": PLAN_PROMPT_VERSION,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m evals.planning",
        description="What weft's planner is worth: orchestration, validity, quality, healing.",
    )
    parser.add_argument("--quick", action="store_true", help="fewer tasks, within ten minutes")
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
        raise argparse.ArgumentTypeError(f"there is no section {', '.join(unknown)}")
    return names


if __name__ == "__main__":
    main()
