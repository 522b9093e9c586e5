"""A run as a whole: where its time went, its inputs and its outputs.

`RunReaders` finds them; every answer is bounded but for a download.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import StreamingResponse

from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Journal, NumberedRecord
from weft.serving.ui.record_view import Json
from weft.serving.ui.responses import JsonReply, UiRefusal, beginning, download, run_of
from weft.serving.ui.signals import Find


@dataclass(frozen=True, slots=True)
class RunTiming:
    """Where the time of a run went, in seconds since its beginning.

    `bars` are (what the node did, from, to), `path` is the critical path: (node, what, from, to).
    `speed_up`: work over wall time, where that says something. `advice`: which nodes to speed up
    first, the seconds that it saves, and what part of the wall time that is.
    """

    bars: Mapping[NodeId, Sequence[tuple[str, float, float]]]
    path: Sequence[tuple[NodeId, str, float, float]]
    speed_up: float | None = None
    advice: tuple[str, float, float] | None = None


@dataclass(frozen=True, slots=True)
class RunValues:
    """What went into a run and what came of it, without its secrets. `missing` says why."""

    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunReaders:
    """`unsettled` finds calls that a person has to say something of, `timing` where the time went.

    `values` reads what went in and came out of a run; all of them block.
    """

    unsettled: Find
    timing: Callable[[Iterable[NumberedRecord]], RunTiming]
    values: Callable[[Journal, RunId], RunValues]


_MOST_BARS: Final = 100_000
_MOST_STEPS: Final = 20_000
_MOST_VALUES: Final = 200
_CHARS: Final = 20_000


class OverviewEndpoints:
    """The endpoints that read a run as a whole."""

    def __init__(self, journal: Journal, readers: RunReaders) -> None:
        self._journal = journal
        self._readers = readers

    async def timing(self, request: Request) -> JsonReply:
        """The bars of its nodes, its critical path, and what to speed up."""
        run = run_of(request)
        records = await asyncio.to_thread(self._journal.records, run)
        return JsonReply(_timing(await asyncio.to_thread(self._readers.timing, records)))

    async def values(self, request: Request) -> JsonReply:
        """Its inputs and outputs, each cut where it is long."""
        found = await asyncio.to_thread(self._readers.values, self._journal, run_of(request))
        missing = islice(found.missing.items(), _MOST_VALUES)
        told: dict[str, Json] = {
            "inputs": await asyncio.to_thread(_values, found.inputs),
            "outputs": await asyncio.to_thread(_values, found.outputs),
            "missing": [{"name": name, "why": why[:_CHARS]} for name, why in missing],
        }
        return JsonReply(told)

    async def value(self, request: Request) -> StreamingResponse:
        """One of them in full, as a file of plain text."""
        run, name = run_of(request), request.query_params.get("name", "")
        found = await asyncio.to_thread(self._readers.values, self._journal, run)
        sides = {"inputs": found.inputs, "outputs": found.outputs}
        values = sides.get(request.query_params.get("of", ""), {})
        if name not in values:
            raise UiRefusal(404, "the run has no such input or output")
        return download(values[name], f"{run}-{name}")


def _timing(found: RunTiming) -> dict[str, Json]:
    """Nodes whose bars do not fit are drawn by what the page knows of them."""
    bars: dict[str, Json] = {}
    left = _MOST_BARS
    for node, own in found.bars.items():
        left -= len(own)
        if left < 0:
            break
        bars[node] = [list(bar) for bar in own]
    advice = found.advice
    return {
        "bars": bars,
        "path": [list(step) for step in found.path[:_MOST_STEPS]],
        "speed_up": found.speed_up,
        "advice": advice and dict(zip(("target", "saves_s", "fraction"), advice, strict=True)),
    }


def _values(values: Mapping[str, Any]) -> list[Json]:
    told: list[Json] = []
    for name, value in islice(values.items(), _MOST_VALUES):
        text, more = beginning(value, _CHARS)
        is_text = isinstance(value, str)
        length = None if not more else len(value) if is_text else -1
        told.append({"name": name, "text": text, "json": not is_text, "cut": length})
    return told
