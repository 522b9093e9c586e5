"""Processes of `weft worker` on one journal, and the ledger of what their nodes did."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TOOLS = '''
import asyncio, os
import weft

@weft.tool
async def act(run: int, item: int) -> int:
    """Note that it runs, and take a moment."""
    os.write(int(os.environ["LEDGER"]), f"{run} {item} {os.getpid()}\\n".encode())
    await asyncio.sleep(0.05)
    return item

def add(values: list[int]) -> int:
    return sum(values)
'''
ITEMS = 8
FLOW = f"""
name: items
inputs: {{run: integer}}
tools: {{act: "./tools.py:act"}}
nodes:
  acted:
    map: {list(range(ITEMS))}
    as: item
    width: 2
    do: {{tool: act, with: {{run: "{{{{ run }}}}", item: "{{{{ item }}}}"}}}}
  total: {{reduce: "./tools.py:add", over: "{{{{ acted }}}}"}}
outputs: {{total: "{{{{ total }}}}"}}
"""
TOTAL = sum(range(ITEMS))
WEFT = [sys.executable, "-c", "from weft.cli.entry import run; run()"]


def write_flow(folder: Path) -> Path:
    (folder / "tools.py").write_text(TOOLS)
    (folder / "items.yaml").write_text(FLOW)
    return folder / "items.yaml"


class WorkerProcess:
    """A worker whose tools write to the file descriptor `ledger`."""

    def __init__(self, folder: Path, journal: str, ledger: int, *options: str) -> None:
        self._log = (folder / "workers.log").open("ab")
        self.process = subprocess.Popen(
            [*WEFT, "worker", "items.yaml", "--journal", journal, *options],
            cwd=folder,
            env={**os.environ, "LEDGER": str(ledger)},
            pass_fds=(ledger,),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        self.pid = self.process.pid

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()

    def drain(self) -> int:
        self.process.terminate()
        try:
            return self.process.wait(120)
        finally:
            self._log.close()
