"""Synthetic programs over a simulated cluster: CPU time and memory for a node, by size.

Each size is measured in a process of its own, since memory that was once taken stays taken.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from evals.engine.rows import Lookup, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
_PROGRAM: Final = """
import json, resource, sys, time
from weft.durability.simulate import Change
from weft.durability.simulate.simulator import RunSimulator
from evals.simulation.synthetic import Synthetic
from weft.durability.simulate.change import SimulatedTimes
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.process_time()
recorded = Synthetic(int(sys.argv[1])).recording()
player = RunSimulator(recorded, Change(), SimulatedTimes((), Change()))
wall_s = player.play()
cpu_s = time.process_time() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
nodes = len(player.scheduler.states)
print(json.dumps([nodes, wall_s, cpu_s, (peak - before) * 1024, player.events]))
"""


def rows(quick: bool) -> list[dict[str, Any]]:
    """All rows; a million nodes in the full mode only."""
    found: list[Row] = []
    for size in SIZES[:-1] if quick else SIZES:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(size)], capture_output=True, text=True, check=True
        )
        nodes, wall_s, cpu_s, held_bytes, events = json.loads(done.stdout)
        case = f"nodes_{size}"
        found += [
            Row(case, "weft", "nodes", nodes, "nodes"),
            Row(case, "weft", "simulated_s", wall_s, "s"),
            Row(case, "weft", "cpu_us_per_node", cpu_s / nodes * 1e6, "us"),
            Row(case, "weft", "bytes_per_node", held_bytes / nodes, "bytes"),
            Row(case, "weft", "events_per_node", events / nodes, "events"),
        ]
    return [asdict(row) for row in found]


def panel(axes: Axes, figures: Lookup) -> None:
    """Time for a node over the number of nodes."""
    known = [
        (size, value)
        for size in SIZES
        if (value := figures(f"nodes_{size}", "weft", "cpu_us_per_node")) is not None
    ]
    axes.semilogx(*zip(*known, strict=True), "o-")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("nodes")
    axes.set_ylabel("CPU µs for a node")
    axes.set_title("simulated clusters: 256 model places, 64 tool workers")
