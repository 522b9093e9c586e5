"""One system with one graph in a process of its own: does it work, and in how much memory?

Usage: `python -m evals.engine.probe SYSTEM CASE`; prints one JSON object, `{"error": ...}` when the
system refuses. Peak memory is that of building the graph once and running it twice.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path

from evals.engine.cases import CASES, chain
from evals.engine.rounds import Contestant

_STATUS = Path("/proc/self/status")


def peak_bytes() -> int:
    """The most resident memory this process has had.

    From the kernel's own count where there is one: `ru_maxrss` of a child also covers its parent.
    """
    if _STATUS.exists():
        fields = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


async def probe(system: str, case_name: str) -> dict[str, int | str]:
    """`peak_bytes`, and `added_bytes` over what the imported system takes by itself; or `error`."""
    case = CASES[case_name]
    try:
        await Contestant(system, chain("warm_up", 3)).sample()
        before = peak_bytes()
        contestant = Contestant(system, case)
        await contestant.sample()
        await contestant.sample()
    except Exception as error:  # noqa: BLE001 - a peer may refuse in any way it likes
        return {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}
    peak = peak_bytes()
    return {"peak_bytes": peak, "added_bytes": peak - before}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(probe(sys.argv[1], sys.argv[2]))))
