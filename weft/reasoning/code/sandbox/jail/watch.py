"""How much memory the processes below one process hold together, as /proc tells."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_COUNTED: Final = ("RssAnon:", "RssShmem:", "VmSwap:", "VmPTE:")
"""Pages of files are left out: several processes share them, and the system can drop them."""


def why_unwatched() -> str:
    """Why memory cannot be watched here; empty: it can be."""
    here = os.getpid()
    if Path(f"/proc/{here}/task/{here}/children").exists():
        return ""
    return "/proc does not tell the children of a process"


def memory_below(process: int) -> int:
    """Bytes in use by all descendants of `process`; one that ends meanwhile counts as it can."""
    return sum(_memory(each) for each in _below(process))


def _below(process: int) -> Iterator[int]:
    todo = [process]
    while todo:
        for child in _children(todo.pop()):
            yield child
            todo.append(child)


def _children(process: int) -> Iterator[int]:
    try:
        for thread in Path(f"/proc/{process}/task").iterdir():
            yield from map(int, (thread / "children").read_text().split())
    except OSError:
        return


def _memory(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(_COUNTED))
