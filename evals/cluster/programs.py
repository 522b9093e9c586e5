"""The programs of the chaos: `python -m evals.cluster.programs FOLDER`, until all have ended.

Killed at any moment, and started again: programs that have begun are resumed from the journal. An
ended one leaves a file with its outcomes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

import weft
from weft.cluster.settings import Ray
from weft.core.errors import BuildError, StoreError, UnknownReference, WeftError

HERE: Final = Path(__file__).parent
AT_ONCE: Final = 2


async def main(folder: Path) -> None:
    """Run what has not ended."""
    about = json.loads((folder / "about.json").read_text("utf-8"))
    ray = Ray(**about["ray"])
    journal = weft.open_journal(folder / "journal.sqlite")
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
            result = await _ended(flow, f"p{program}", inputs, journal, ray)
            _write(folder / f"{program}.json", result)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(work())


async def _ended(
    flow: weft.Flow, run: str, inputs: dict[str, Any], journal: Any, ray: Ray
) -> weft.FlowResult[Any]:
    """The program's end: it is resumed where it has begun, and while failures may go away."""
    result = None
    for _ in range(20):
        try:
            prepared = flow.resume(run, journal=journal, on=ray)
        except (UnknownReference, BuildError, StoreError):
            if result is not None:
                return result
            prepared = flow.start(inputs, run=run, journal=journal, on=ray)
        result = await prepared.wait()
        if not any(error.retryable for error in result.errors.values()):
            break
    assert result is not None
    return result


def _write(file: Path, result: weft.FlowResult[Any]) -> None:
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
