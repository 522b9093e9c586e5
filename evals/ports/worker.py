"""`python -m evals.ports.worker SYSTEM JOB`: runs one program again and again, in one process.

Reads "run" on standard input for each run, and answers with one line of JSON: the result, the model
calls and the milliseconds of wall time.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

from evals.ports.jobs import lay_out
from evals.ports.script import SCRIPTS


def main() -> None:
    """Run until standard input ends."""
    system, job = sys.argv[1:]
    warnings.simplefilter("ignore")
    program = importlib.import_module(f"evals.ports.{system}_programs.{job}")
    models = importlib.import_module(f"evals.ports.{system}_model")
    for _ in sys.stdin:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            lay_out(folder)
            model = models.scripted(SCRIPTS[job])
            before = time.perf_counter()
            result = asyncio.run(program.run(model, folder))
            took_ms = 1000 * (time.perf_counter() - before)
        line = {"result": result, "calls": model.calls, "ms": took_ms}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
