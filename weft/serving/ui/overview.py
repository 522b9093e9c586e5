"""A run as a whole: where its time went, its inputs and its outputs.

`RunReaders` provides them. Every response except a download is bounded.
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
from weft.serving.ui.experiments import ExperimentReaders
from weft.serving.ui.record_view import Json
from weft.serving.ui.responses import JsonReply, UiRefusal, beginning, download, run_of
from weft.serving.ui.signals import Find


@dataclass(frozen=True, slots=True)
class RunTiming:
    """Where the time of a run went, in seconds since its beginning.

    `bars` are (what the node did, from, to), `path` is the critical path: (node, what, from, to).
    `speed_up`: work over wall time, where that says something. `advice`: the nodes to speed up
    first, the seconds that saves, and its share of the wall time.
    """

    bars: Mapping[NodeId, Sequence[tuple[str, float, float]]]
    path: Sequence[tuple[NodeId, str, float, float]]
    speed_up: float | None = None
    advice: tuple[str, float, float] | None = None


@dataclass(frozen=True, slots=True)
class RunValues:
    """The inputs and outputs of a run, without secrets. `missing` says why one is missing."""

    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunReaders:
    """`unsettled` finds undecided calls, `timing` where the time went.

    `values` reads inputs and outputs of a run; all of them block. `experiments`, where given, read
    evaluations and studies.
    """

    unsettled: Find
    timing: Callable[[Iterable[NumberedRecord]], RunTiming]
    values: Callable[[Journal, RunId], RunValues]
    experiments: ExperimentReaders | None = None


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
        """The bars of the run's nodes, its critical path, and what to speed up."""
        run = run_of(request)
        records = await asyncio.to_thread(self._journal.records, run)
        return JsonReply(_timing(await asyncio.to_thread(self._readers.timing, records)))

    async def values(self, request: Request) -> JsonReply:
        """The run's inputs and outputs, each cut where it is long."""
        found = await asyncio.to_thread(self._readers.values, self._journal, run_of(request))
        missing = islice(found.missing.items(), _MOST_VALUES)
        view: dict[str, Json] = {
            "inputs": await asyncio.to_thread(_values, found.inputs),
            "outputs": await asyncio.to_thread(_values, found.outputs),
            "missing": [{"name": name, "why": why[:_CHARS]} for name, why in missing],
        }
        return JsonReply(view)

    async def value(self, request: Request) -> StreamingResponse:
        """An input or output in full, as a text file."""
        run, name = run_of(request), request.query_params.get("name", "")
        found = await asyncio.to_thread(self._readers.values, self._journal, run)
        sides = {"inputs": found.inputs, "outputs": found.outputs}
        values = sides.get(request.query_params.get("of", ""), {})
        if name not in values:
            raise UiRefusal(404, "the run has no such input or output")
        return download(values[name], f"{run}-{name}")


def _timing(found: RunTiming) -> dict[str, Json]:
    """The response; the page draws nodes without bars from their records."""
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
    views: list[Json] = []
    for name, value in islice(values.items(), _MOST_VALUES):
        text, more = beginning(value, _CHARS)
        is_text = isinstance(value, str)
        length = None if not more else len(value) if is_text else -1
        views.append({"name": name, "text": text, "json": not is_text, "cut": length})
    return views
