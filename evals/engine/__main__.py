"""`python -m evals.engine [--quick] [--json FILE] [--plot FILE]`."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from evals.engine.evaluation import FULL, QUICK, Evaluation, surroundings
from evals.engine.plot import draw
from evals.engine.report import table


def main() -> None:
    """Evaluate; print the table; write what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m evals.engine",
        description="What the engine costs beside asyncio, LangGraph, pydantic-graph and Hamilton.",
    )
    parser.add_argument("--quick", action="store_true", help="the same, with fewer repetitions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the medians there")
    arguments = parser.parse_args()
    evaluation = Evaluation(QUICK if arguments.quick else FULL)
    evaluation.run()
    about = surroundings()
    print("\n" + ", ".join(f"{name} {value}" for name, value in about.items()) + "\n")
    print(table(evaluation.rows))
    if arguments.json:
        rows = [asdict(row) for row in evaluation.rows]
        arguments.json.write_text(json.dumps({"environment": about, "rows": rows}, indent=1) + "\n")
    if arguments.plot:
        draw(evaluation.rows, arguments.plot)


if __name__ == "__main__":
    main()
