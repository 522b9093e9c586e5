"""A process that runs one workflow after another, recorded on a server that comes and goes.

Standard output is the ledger: each effect is one line, written at once. It ends with the run during
which the file `stop` appeared. Arguments: the address of the journal, a name, and that file.
"""

from __future__ import annotations

import asyncio
import os
import sys
from itertools import count
from pathlib import Path

import weft
from weft.core.ids import RunId
from weft.workflow.runtime.journals import open_journal

ITEMS = 12


@weft.tool(effect="once")
async def charge(order: str, item: int) -> int:
    """Write a line into the ledger."""
    os.write(1, f"{order} {item}\n".encode())
    await asyncio.sleep(0)
    return item


def main() -> None:
    """Run until it is told to stop. Raises what a run raises, and where one does not succeed."""
    address, name, stop = sys.argv[1:]
    flow = weft.Flow("charges", concurrency=4)
    order = flow.input("order", str)
    flow.output(
        charged=flow.map(list(range(ITEMS)), lambda item: flow.tool(charge, order=order, item=item))
    )
    journal = open_journal(address)
    for number in count(1):
        run = RunId(f"{name}-{number}")
        result = flow.run_sync({"order": run}, journal=journal, run=run)
        assert result.status == "succeeded", (run, result.reasons)
        assert result.outputs == {"charged": list(range(ITEMS))}
        if Path(stop).exists():
            break
    journal.close()


if __name__ == "__main__":
    main()
