"""Predicted against real wall time of edited programs: `python -m evals.optimise_wall [--quick]`.

Each program is a random graph of eight nodes. It runs once through an outcome table; one node is
edited; `weft.optimisation.prediction` says how long the edited program takes with two workers, of
which it runs the nodes that are new; then the edited program runs. `waits`: model calls that sleep
for as long as a log-normal law says of the request; no core is shared. `computes`: functions that
count in a loop, on threads of one interpreter. `computes_alone`: the same with one worker, so that
no two of them run at once; what is left of the error is not due to sharing.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Final

import weft
from evals.engine.rows import Row
from evals.results import environment, title, write_results
from evals.sectioned import arguments
from weft.core.ports import ModelRequest
from weft.evaluation.statistics import quantile_of
from weft.optimisation.prediction import predict
from weft.optimisation.table import OutcomeTable
from weft.testing import FakeModel, Reply

SECTIONS: Final = ("waits", "computes", "computes_alone")
NODES: Final = 8
FUNCTIONS: Final = """\
def spin(count: int, given: list) -> int:
    total = 0
    for each in range(count):
        total += each % 7
    return total
"""


def main() -> None:
    """Measure, print, and write the rows."""
    asked = arguments("optimise_wall", __doc__ or "", SECTIONS)
    about = environment()
    print(title(about))
    rows: list[Row] = []
    for name in asked.only:
        for row in section(name, 6 if asked.quick else 40):
            print(f"{row.case:10} {row.metric:24} {row.value:10.4f} {row.unit}")
            rows.append(row)
    if asked.json is not None:
        write_results(asked.json, rows, about)


def section(name: str, programs: int) -> Iterator[Row]:
    """The errors of the predictions of so many programs, as shares of the real time."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "functions.py").write_text(FUNCTIONS, encoding="utf-8")
        found = [asyncio.run(_one(name, Path(folder), number)) for number in range(programs)]
    errors = [abs(predicted - real) / real for predicted, real in found]
    biases = [predicted / real - 1 for predicted, real in found]
    yield Row(name, "weft", "programs", programs, "programs")
    yield Row(name, "weft", "median_wall_s", median(real for _, real in found), "s")
    yield Row(name, "weft", "median_error", median(errors), "share")
    yield Row(name, "weft", "p95_error", quantile_of(errors, 0.95), "share")
    yield Row(name, "weft", "median_bias", median(biases), "share")


async def _one(name: str, folder: Path, number: int) -> tuple[float, float]:
    """Seconds predicted for an edited program, and those that it took."""
    random = Random(number)
    nodes = {f"n{at}": _node(name, random, at) for at in range(NODES)}
    edited = json.loads(json.dumps(nodes))
    changed = edited[random.choice(list(edited))]
    if name == "waits":
        changed["prompt"] = f"Now {changed['prompt']}"
    else:
        changed["with"]["count"] = _count(random)
    clients, table = {"small": FakeModel(_answer)}, OutcomeTable()
    workers = 1 if name == "computes_alone" else 2
    base, flow = (_flow(folder, each, workers) for each in (nodes, edited))
    await predict(base, {"x": "topic"}, table, workers=workers, models=clients)
    found = await predict(flow, {"x": "topic"}, table, workers=workers, models=clients)
    began = time.perf_counter()
    await flow.run(x="topic", models=clients, durability="none")
    return found.wall_s, time.perf_counter() - began


def _node(name: str, random: Random, at: int) -> dict[str, Any]:
    """A node that uses up to two of those before it."""
    used = random.sample(range(at), min(at, random.choice((1, 1, 2))))
    names = [f"{{{{ n{each} }}}}" for each in used] or ["{{ x }}"]
    if name == "waits":
        return {"model": "small", "prompt": f"{at}: {' '.join(names)}"}
    return {"call": "./functions.py:spin", "with": {"count": _count(random), "given": names}}


def _count(random: Random) -> int:
    return random.randint(300_000, 2_000_000)


def _flow(folder: Path, nodes: Mapping[str, Any], workers: int) -> weft.Flow:
    document = {
        "name": "random",
        "inputs": {"x": "string"},
        "models": {"small": "local:tiny"},
        "run": {"concurrency": workers},
        "nodes": nodes,
        "outputs": {name: f"{{{{ {name} }}}}" for name in nodes},
    }
    file = folder / "flow.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return weft.load(file)


def _answer(request: ModelRequest) -> Reply:
    """Some word, after a time of its own: both follow from the request."""
    text = request.messages[-1].content
    number = int.from_bytes(sha256(f"{text}".encode()).digest()[:6])
    return Reply(f"w{number}", first_token_s=0.15 * Random(number).lognormvariate(0, 0.5))


if __name__ == "__main__":
    main()
