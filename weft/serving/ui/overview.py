"""What a run is as a whole: where its time went, what went into it, what came of it.

How that is found is told from outside; every answer is bounded but for a download.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import StreamingResponse

from weft.core.ports.journal import Journal
from weft.serving.ui.asked import run_of
from weft.serving.ui.problem import Refused
from weft.serving.ui.readers import RunReaders, RunTiming
from weft.serving.ui.reply import Reply, download
from weft.serving.ui.shown import Json
from weft.serving.ui.text import beginning

_MOST_BARS: Final = 100_000
_MOST_STEPS: Final = 20_000
_MOST_VALUES: Final = 200
_CHARS: Final = 20_000


class Overview:
    """The endpoints that read a run as a whole."""

    def __init__(self, journal: Journal, readers: RunReaders) -> None:
        self._journal = journal
        self._readers = readers

    async def timing(self, request: Request) -> Reply:
        """The bars of its nodes, its critical path, and what to speed up."""
        run = run_of(request)
        records = await asyncio.to_thread(self._journal.records, run)
        return Reply(_timing(await asyncio.to_thread(self._readers.timing, records)))

    async def values(self, request: Request) -> Reply:
        """Its inputs and outputs, each cut where it is long."""
        found = await asyncio.to_thread(self._readers.values, self._journal, run_of(request))
        missing = islice(found.missing.items(), _MOST_VALUES)
        told: dict[str, Json] = {
            "inputs": await asyncio.to_thread(_values, found.inputs),
            "outputs": await asyncio.to_thread(_values, found.outputs),
            "missing": [{"name": name, "why": why[:_CHARS]} for name, why in missing],
        }
        return Reply(told)

    async def value(self, request: Request) -> StreamingResponse:
        """One of them in full, as a file of plain text."""
        run, name = run_of(request), request.query_params.get("name", "")
        found = await asyncio.to_thread(self._readers.values, self._journal, run)
        sides = {"inputs": found.inputs, "outputs": found.outputs}
        values = sides.get(request.query_params.get("of", ""), {})
        if name not in values:
            raise Refused(404, "the run has no such input or output")
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
