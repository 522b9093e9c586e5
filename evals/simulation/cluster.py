"""What the parts of a cluster cost here, measured, and a map over up to 10,000 machines, simulated.

Costs come from flows at their defaults: the slope between two sizes, so that what a run takes once
does not count. `step_us` is what a step adds beside its nodes. PostgreSQL is a server of its own
on this machine, which waits for its disk.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import weft
from evals.engine.rows import Lookup, Row
from weft.core.ports.journal import Journal
from weft.durability.simulate import measured_costs, simulate_cluster
from weft.durability.simulate.cluster_costs import JOURNALS, JournalKind
from weft.workflow.content import open_content_store
from weft.workflow.runtime.journals import open_journal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MACHINES: Final = (1, 10, 100, 1_000, 10_000)
SECONDS: Final = (0.1, 1.0, 10.0)
RESULT_BYTES: Final = 1_000_000
_ITEMS: Final = 1_000_000
_MAPS: Final = (1_000, 6_000)
_CHAINS: Final = (20, 120)
_STORED_BYTES: Final = (70_000, 4_000_000)


@weft.tool(effect="pure")
async def same(item: int) -> int:
    """Nothing."""
    return item


def rows(quick: bool) -> list[dict[str, Any]]:
    """Costs measured here, and predictions with those that weft ships."""
    return [asdict(row) for row in (*_costs(3 if quick else 9), *_predictions(quick))]


def _costs(rounds: int) -> Iterator[Row]:
    flows = {f"map_{size}": _map(size) for size in _MAPS}
    flows |= {f"chain_{size}": _chain(size) for size in _CHAINS}
    with ExitStack() as opened:
        journals = _journals(opened)
        for kind, journal in journals.items():
            took = {
                name: median(_wall_s(flow, journal) for _ in range(rounds))
                for name, flow in flows.items()
            }
            node = (took["map_6000"] - took["map_1000"]) / (_MAPS[1] - _MAPS[0])
            step = (took["chain_120"] - took["chain_20"]) / (_CHAINS[1] - _CHAINS[0]) - node
            yield Row("costs", kind, "node_us", node * 1e6, "us")
            yield Row("costs", kind, "step_us", max(step, 0.0) * 1e6, "us")
        yield from _kept(opened)
        yield from _stores(opened)


def _journals(opened: ExitStack) -> dict[JournalKind, Journal | None]:
    found: dict[JournalKind, Journal | None] = {"none": None}
    folder = opened.enter_context(TemporaryDirectory())
    found["sqlite"] = open_journal(Path(folder) / "journal.sqlite")
    opened.callback(found["sqlite"].close)
    server = _server(opened)
    if server is None:
        print("no PostgreSQL server is installed here", file=sys.stderr)
        return found
    found["postgres"] = open_journal(server)
    opened.callback(found["postgres"].close)
    return found


def _server(opened: ExitStack) -> str | None:
    import pytest

    from tests.postgres_server import postgres_server

    try:
        return opened.enter_context(postgres_server(durable=True)).database()
    except pytest.skip.Exception:
        return None


def _kept(opened: ExitStack) -> Iterator[Row]:
    """What an ended node keeps: memory of the process, bytes of a journal in a file."""
    path = Path(opened.enter_context(TemporaryDirectory())) / "journal.sqlite"
    journal = open_journal(path)
    opened.callback(journal.close)
    _wall_s(_map(1_000), journal)
    before, bytes_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, _size(path)
    _wall_s(_map(60_000), journal)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield Row("costs", "sqlite", "memory_bytes_per_node", (peak - before) * 1024 / 60_000, "bytes")
    yield Row("costs", "sqlite", "record_bytes", (_size(path) - bytes_before) / 60_000, "bytes")


def _stores(opened: ExitStack) -> Iterator[Row]:
    """An object written and read again: a fixed part, and a bandwidth."""
    folder = opened.enter_context(TemporaryDirectory())
    places = {"sqlite": folder, "postgres": _server(opened)}
    for kind, place in places.items():
        if place is not None:
            small, large = asyncio.run(_stored_s(place))
            a_byte = (large - small) / (_STORED_BYTES[1] - _STORED_BYTES[0])
            yield Row("costs", kind, "store_ms", (small - _STORED_BYTES[0] * a_byte) * 1e3, "ms")
            yield Row("costs", kind, "store_mb_s", 1e-6 / a_byte, "MB/s")


async def _stored_s(place: str) -> tuple[float, float]:
    store = open_content_store(place)
    took: list[float] = []
    try:
        for size in _STORED_BYTES:
            each = []
            for _ in range(15):
                content, began = os.urandom(size), time.perf_counter()
                await store.get(await store.put(content))
                each.append(time.perf_counter() - began)
            took.append(median(each))
    finally:
        await store.aclose()
    return took[0], took[1]


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*") if file.is_file())


def _map(size: int) -> weft.Flow:
    flow = weft.Flow(f"map{size}")
    flow.output(done=flow.map(list(range(size)), lambda item: flow.tool(same, item=item)))
    return flow


def _chain(size: int) -> weft.Flow:
    flow = weft.Flow(f"chain{size}")
    last = flow.tool(same, item=0)
    for _ in range(size - 1):
        last = flow.tool(same, item=last)
    flow.output(done=last)
    return flow


def _wall_s(flow: weft.Flow, journal: Journal | None) -> float:
    began = time.perf_counter()
    recorded = {"durability": "none"} if journal is None else {"journal": journal}
    result = flow.run_sync(**recorded)
    took_s = time.perf_counter() - began
    assert result.status == "succeeded", result.reasons
    return took_s


def _predictions(quick: bool) -> Iterator[Row]:
    for kind in JOURNALS:
        for machines in MACHINES:
            for seconds in SECONDS:
                yield from _prediction(kind, machines, seconds, 0, quick)
    for machines in MACHINES:
        yield from _prediction("sqlite", machines, 1.0, RESULT_BYTES, quick)
    million = simulate_cluster(nodes=1_000, items=_ITEMS, seconds=1.0)
    yield Row("million", "sqlite", "wall_s", million.wall_s, "s")
    yield Row("million", "sqlite", "ideal_s", million.ideal_s, "s")
    yield Row("million", "sqlite", "memory_bytes", million.memory_bytes, "bytes")
    yield Row("million", "sqlite", "journal_bytes", million.journal_bytes, "bytes")


def _prediction(
    kind: JournalKind, machines: int, seconds: float, result_bytes: int, quick: bool
) -> Iterator[Row]:
    found = simulate_cluster(
        nodes=machines,
        items=min(machines * 8 * 50, 200_000 if quick else _ITEMS),
        seconds=seconds,
        result_bytes=result_bytes,
        costs=measured_costs(kind),
    )
    case = f"machines_{machines}_{seconds:g}s" + ("_1mb" if result_bytes else "")
    yield Row(case, kind, "efficiency", found.efficiency, "share")
    yield Row(case, kind, "items_per_s", found.items / found.wall_s, "items/s")
    yield Row(case, kind, f"limit_{found.limit}", found.busy[found.limit], "share")


def panel(axes: Axes, figures: Lookup) -> None:
    """Share of the machines' time that is used, by their number, journal in a file."""
    for seconds in SECONDS:
        _line(axes, figures, f"_{seconds:g}s", f"{seconds:g} s an item")
    _line(axes, figures, "_1s_1mb", "1 s an item, results of 1 MB")
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("machines with 8 slots each")
    axes.set_ylabel("share of their time used")
    axes.set_title("one map, one scheduling process, simulated")
    axes.legend()


def _line(axes: Axes, figures: Lookup, case: str, label: str) -> None:
    values = [
        figures(f"machines_{machines}{case}", "sqlite", "efficiency") for machines in MACHINES
    ]
    known = [(m, value) for m, value in zip(MACHINES, values, strict=True) if value is not None]
    axes.semilogx(*zip(*known, strict=True), "o-", label=label)
