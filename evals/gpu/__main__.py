"""`python -m evals.gpu [--dry-run] [--model NAME] [--only A,B] [--json FILE] [--plot FILE]`."""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractContextManager

from evals.gpu.bench import Bench, dry_bench, real_bench
from evals.gpu.sections import SECTIONS, failed, found_by, module
from evals.planning.effort import Skipped
from evals.reasoning.plot import draw
from evals.reasoning.report import row_by_row
from evals.results import environment, title, write_results
from evals.sectioned import arguments


def main() -> int:
    """Evaluate; print one table; write what was asked for. The exit status is 1 where a section
    failed, and 2 without a GPU.
    """
    asked = arguments("gpu", "What one GPU shows of weft.", SECTIONS, _more)
    try:
        with _bench(asked) as bench:
            about = environment(("torch", "transformers", "vllm"), **_device(bench))
            found = []
            for section in asked.only:
                found.append(found_by(section, bench))
                if asked.json:  # after each: what is measured stays, whatever comes next
                    write_results(asked.json, (row for _, rows in found for row in rows), about)
    except Skipped as reason:
        print(f"nothing was run: {reason}", file=sys.stderr)
        return 2
    rows = [row for _, section in found for row in section]
    print(f"\n{title(about)}\n\n{row_by_row(rows)}")
    if asked.plot and not draw(found, asked.plot, module):
        print("nothing was measured that can be drawn", file=sys.stderr)
    return int(failed(rows))


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="a fake device, tiny sizes: no GPU")
    parser.add_argument("--model", default="", help="local:NAME or vllm:NAME, for strategies")
    parser.add_argument("--items", type=int, default=20, help="questions of each task")


def _bench(asked: argparse.Namespace) -> AbstractContextManager[Bench]:
    return dry_bench() if asked.dry_run else real_bench(asked.model, asked.items)


def _device(bench: Bench) -> dict[str, str]:
    """The device as a reader knows it."""
    if bench.dry:
        return {"device": "none: a dry run, whose figures mean nothing"}
    import torch

    about = torch.cuda.get_device_properties(0)
    memory = f"{about.total_memory / 2**30:.0f} GiB"
    return {"device": f"{about.name}, {memory}", "cuda": str(torch.version.cuda)}


if __name__ == "__main__":
    sys.exit(main())
