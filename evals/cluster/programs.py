"""The programs of the chaos: `python -m evals.cluster.programs FOLDER`, until all have ended.

Killed at any moment, and started again: programs that have begun are resumed from the journal. An
ended one leaves a file with its outcomes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final, Literal

import weft
from weft.cluster.settings import Ray
from weft.core.errors import RunBusy, StoreError, UnknownReference, WeftError
from weft.core.ids import RunId
from weft.workflow.history.recorded_workflow import result_of
from weft.workflow.history.resume import RunSucceeded
from weft.workflow.history.run_history import read_history

HERE: Final = Path(__file__).parent
AT_ONCE: Final = 2
LEASE_S: Final = 3.0
PAUSE_S: Final = 0.5
TRIES: Final = 100
UNENDED: Final = ("running", "asking", "interrupted")


async def main(folder: Path) -> None:
    """Run what has not ended."""
    about = json.loads((folder / "about.json").read_text("utf-8"))
    ray = Ray(**about["ray"])
    journal = weft.open_journal(about["journal"], lease_s=LEASE_S)
    flow = weft.load(HERE / "chaos.yaml")
    waiting = [n for n in range(about["programs"]) if not (folder / f"{n}.json").exists()]
    waiting.reverse()

    async def work() -> None:
        while waiting:
            program = waiting.pop()
            inputs = {
                "program": program,
                "ledger": str(folder / "ledger"),
                **{name: list(range(about[name])) for name in ("pure", "booked", "charged")},
            }
            result = await ended(flow, f"p{program}", inputs, journal, ray)
            write(folder / f"{program}.json", result)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(work())


async def ended(
    flow: weft.Flow, run: str, inputs: dict[str, Any], journal: Any, on: Ray | Literal["local"]
) -> weft.FlowResult[Any]:
    """The program's end: it is resumed where it has begun, and while failures may go away."""
    for _ in range(TRIES):
        try:
            prepared = _prepared(flow, run, inputs, journal, on)
        except RunSucceeded:  # killed between its end and its file
            return result_of(read_history(journal, RunId(run)))
        except RunBusy:  # the process that had it was killed: its lease expires
            await asyncio.sleep(PAUSE_S)
            continue
        result = await prepared.wait()
        is_recorded = journal.summary(RunId(run)).standing not in UNENDED
        if is_recorded and not any(error.retryable for error in result.errors.values()):
            return result
        await asyncio.sleep(PAUSE_S)
    raise StoreError(f"{run} does not come to an end in {TRIES} parts")


def _prepared(
    flow: weft.Flow, run: str, inputs: dict[str, Any], journal: Any, on: Ray | Literal["local"]
) -> weft.FlowRun[Any]:
    try:
        return flow.resume(run, journal=journal, on=on)
    except UnknownReference:
        return flow.start(inputs, run=run, journal=journal, on=on)


def write(file: Path, result: weft.FlowResult[Any]) -> None:
    """Write a program's end, in one piece."""
    outcomes = {
        str(node): [outcome.status, outcome.failure.error if outcome.failure else ""]
        for node, outcome in result.outcomes.items()
    }
    found = {"status": result.status, "outputs": result.outputs, "outcomes": outcomes}
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(found), "utf-8")
    partial.replace(file)


if __name__ == "__main__":
    try:
        asyncio.run(main(Path(sys.argv[1])))
    except* WeftError as errors:
        print(errors.exceptions, file=sys.stderr)
        raise SystemExit(1) from None
