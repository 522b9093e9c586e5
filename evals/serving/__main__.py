"""`python -m evals.serving [--quick] [--knobs] [--only PART] [--json FILE] [--plot FILE]`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from evals.engine.rows import Lookup, Row
from evals.results import environment, title, write_results
from evals.serving.evaluation import FULL, QUICK, Evaluation
from evals.serving.failure import EvaluationError
from evals.serving.knobs import sweep
from evals.serving.plot import draw, draw_panels
from evals.serving.report import table
from evals.serving.routers import pressure, section
from evals.serving.server import DTYPES, MODEL
from evals.serving.systems.catalogue import SYSTEMS
from weft.core.errors import ModelNotFound
from weft.serving.weights import locate


def main() -> None:
    """Evaluate; print the table; write what was asked for."""
    arguments = _arguments()
    if arguments.only:
        _routers(arguments)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server has to end with us
    try:
        rows = asyncio.run(_evaluate(arguments))
    except (EvaluationError, ModelNotFound) as error:
        raise SystemExit(str(error)) from error
    _report(rows, environment(("vllm", "torch")), table, arguments.json)
    if arguments.plot:
        draw(rows, arguments.plot)


def _routers(arguments: argparse.Namespace) -> None:
    part = {"router": section, "router-pressure": pressure}[arguments.only]
    rows = part.rows(arguments.quick, programs=arguments.programs)
    _report(rows, environment(), part.table, arguments.json)
    if arguments.plot and part is pressure:
        figures = Lookup(rows)
        draw_panels([partial(panel, figures=figures) for panel in pressure.PANELS], arguments.plot)


def _report(
    rows: Sequence[Row],
    about: Mapping[str, str],
    table: Callable[[Sequence[Row]], str],
    file: Path | None,
) -> None:
    print(f"\n{title(about)}\n")
    print(table(rows))
    if file:
        write_results(file, rows, about)


async def _evaluate(arguments: argparse.Namespace) -> list[Row]:
    model = locate(MODEL)
    if arguments.knobs:
        return await sweep(model, arguments.dtype)
    effort = QUICK if arguments.quick else FULL
    effort = replace(
        effort,
        rounds=arguments.rounds or effort.rounds,
        programs=arguments.programs or effort.programs,
    )
    evaluation = Evaluation(model, effort, arguments.dtype, arguments.systems)
    await evaluation.run()
    return evaluation.rows


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m evals.serving",
        description="Agent-shaped traffic on one vLLM server: plain requests, and weft's client.",
    )
    parser.add_argument("--quick", action="store_true", help="shorter traces, fewer rounds")
    parser.add_argument(
        "--only",
        choices=["router", "router-pressure"],
        help="scripted replicas behind routers, with room for all or short of memory; no server",
    )
    parser.add_argument("--knobs", action="store_true", help="vLLM's own settings instead")
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        default="float32",
        help="in bfloat16 the answers depend on what else is in the batch (default: float32)",
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of the main systems")
    parser.add_argument("--programs", type=int, metavar="N", help="programs in a trace")
    parser.add_argument(
        "--systems",
        type=_names,
        default=(),
        metavar="A,B",
        help=f"only these of: {', '.join(SYSTEMS)}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw latencies and ratios there")
    return parser.parse_args()


def _names(text: str) -> Sequence[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in SYSTEMS]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no system {', '.join(unknown)}")
    return names


if __name__ == "__main__":
    main()
