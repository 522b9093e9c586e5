"""`python -m evals.engine.documents [--json FILE]`: what a workflow file costs before it runs.

Chains of three sizes as YAML, each three times in a fresh process: seconds until `weft.load`
returns, until `Flow.check` returns (the document is compiled then), of the first run and of the
second, and the process's peak memory beyond that of `import weft`. The runs keep no journal.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import linear_regression, median
from tempfile import TemporaryDirectory
from typing import Final

from evals.engine import peers
from evals.engine.rows import Row
from evals.results import environment, title, write_results

SIZES: Final = (2_500, 5_000, 10_000)
ROUNDS: Final = 3
SYSTEM: Final = "weft_yaml"
METRICS: Final = {
    "load_s": "s",
    "check_s": "s",
    "first_run_s": "s",
    "second_run_s": "s",
    "peak_bytes": "B",
}
TOOLS: Final = """
import weft


@weft.tool
async def step(value: int) -> int:
    return value + 1
"""


def main() -> None:
    """Measure, print the rows, write them."""
    parser = argparse.ArgumentParser(prog="python -m evals.engine.documents", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    parser.add_argument("--one", nargs=2, metavar=("SIZE", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(worker(Path(asked.one[1]), int(asked.one[0]))))
        return
    rows = measured()
    about = environment()
    print(title(about))
    for row in rows:
        print(f"{row.case:12} {row.metric:16} {row.value:14,.3f} {row.unit}")
    if asked.json:
        write_results(asked.json, rows, about)


def measured() -> list[Row]:
    """Medians over the rounds for each size, and how far the sizes are from a line."""
    found: dict[int, list[dict[str, float]]] = {size: [] for size in SIZES}
    for _ in range(ROUNDS):
        for size in SIZES:
            found[size].append(_in_fresh_process(size))
    medians = {
        (size, metric): median(one[metric] for one in found[size])
        for size in SIZES
        for metric in METRICS
    }
    rows = [
        Row(f"yaml_{size}", SYSTEM, metric, value, METRICS[metric])
        for (size, metric), value in medians.items()
    ]
    for metric in METRICS:
        values = [medians[size, metric] for size in SIZES]
        rows.append(Row("yaml_line", SYSTEM, f"{metric}_residual", residual(values), "ratio"))
    return rows


def residual(values: list[float]) -> float:
    """The largest distance of the values at `SIZES` from a line, as a share of the largest."""
    slope, start = linear_regression(SIZES, values)
    off = max(abs(start + slope * size - value) for size, value in zip(SIZES, values, strict=True))
    return off / max(values)


def document(size: int) -> str:
    """A chain of `size` tool nodes."""
    nodes = [
        f"  n{number}: {{tool: step, with: {{value: '{{{{ n{number - 1} }}}}'}}}}"
        for number in range(1, size)
    ]
    return "\n".join(
        [
            "name: large",
            "inputs: {first: integer}",
            "tools: {step: './tools.py:step'}",
            "nodes:",
            "  n0: {tool: step, with: {value: '{{ first }}'}}",
            *nodes,
            f"outputs: {{last: '{{{{ n{size - 1} }}}}'}}",
        ]
    )


def _in_fresh_process(size: int) -> dict[str, float]:
    with TemporaryDirectory(prefix="weft-") as folder:
        (Path(folder) / "tools.py").write_text(TOOLS)
        (Path(folder) / "large.yaml").write_text(document(size))
        ended = subprocess.run(
            [sys.executable, "-m", "evals.engine.documents", "--one", str(size), folder],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            cwd=peers.ROOT,
            env=peers.environment(Path(folder)),
        )
    found: dict[str, float] = json.loads(ended.stdout)
    return found


def worker(folder: Path, size: int) -> dict[str, float]:
    """The figures of one process."""
    import weft

    before = _peak_bytes()
    started = time.perf_counter()
    flow = weft.load(folder / "large.yaml")
    loaded = time.perf_counter()
    flow.check()
    checked = time.perf_counter()
    ends = [checked]
    for first in (1, 2):
        if flow.run_sync(first=first, durability="none")["last"] != first + size:
            sys.exit("not a chain")
        ends.append(time.perf_counter())
    return {
        "load_s": loaded - started,
        "check_s": checked - loaded,
        "first_run_s": ends[1] - ends[0],
        "second_run_s": ends[2] - ends[1],
        "peak_bytes": _peak_bytes() - before,
    }


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
