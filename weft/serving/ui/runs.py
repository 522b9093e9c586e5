"""What the page reads of a journal: the runs, the records of one, a text in full.

Every response is bounded: records come a page at a time, with long texts cut. Only a download has
the length of its content.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import StreamingResponse

from weft.core.calls import ModelStreamed
from weft.core.events import NodeStreamed
from weft.core.ids import RunId
from weft.core.ports.journal import Journal, NumberedRecord, RunSummary
from weft.serving.ui.record_view import BRIEF, FULL, STREAM, Detail, Json, shown
from weft.serving.ui.responses import JsonReply, UiRefusal, beginning, download, run_of, whole

_MOST_RUNS: Final = 2_000
_MOST_RECORDS: Final = 2_000
_MOST_DETAILS: Final = 100
_HEADER_CHARS: Final = 100_000


class RunEndpoints:
    """The endpoints that read runs."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def all(self, _: Request) -> JsonReply:
        """The latest runs, one summary each."""
        found = await asyncio.to_thread(self._journal.runs, limit=_MOST_RUNS)
        return JsonReply({"runs": [_summary(run) for run in found]})

    async def one(self, request: Request) -> JsonReply:
        """The header of a run, and its state."""
        return JsonReply(await asyncio.to_thread(self._one, run_of(request)))

    def _one(self, run: RunId) -> dict[str, Json]:
        header = self._journal.header(run)
        view: dict[str, Json] = {
            "run": run,
            "flow": header.flow,
            "wall": header.wall,
            "weft": header.weft,
            "summary": _summary(self._journal.summary(run)),
        }
        for name in ("inputs", "settings"):
            view[name] = _cut(getattr(header, name))
        view["document"] = [
            {"path": path, **_cut(text)} for path, text in islice(header.document.items(), 50)
        ]
        return view

    async def records(self, request: Request) -> JsonReply:
        """A page of the records after `after`, each in brief.

        With `marks=1`, each value comes with a mark that is equal for equal values.
        """
        after = whole(request, "after", 0)
        limit = min(_MOST_RECORDS, max(1, whole(request, "limit", _MOST_RECORDS)))
        found = await asyncio.to_thread(self._records, run_of(request), after, limit)
        last = found[-1].seq if found else after
        brief = replace(BRIEF, marks=request.query_params.get("marks") == "1")
        views = await asyncio.to_thread(_views, found, brief)
        return JsonReply({"records": views, "last": last, "more": len(found) == limit})

    def _records(self, run: RunId, after: int, limit: int) -> list[NumberedRecord]:
        return list(islice(self._journal.records(run, after, limit), limit))

    async def details(self, request: Request) -> JsonReply:
        """The records with the numbers `seqs`, separated by commas: at most 100, in detail."""
        numbers = request.query_params.get("seqs", "").split(",")
        if len(numbers) > _MOST_DETAILS or not all(seq.isdecimal() for seq in numbers):
            raise UiRefusal(400, f"`seqs` is up to {_MOST_DETAILS} numbers, by comma")
        seqs = sorted({int(seq) for seq in numbers})
        return JsonReply(await asyncio.to_thread(self._details, run_of(request), seqs))

    def _details(self, run: RunId, seqs: list[int]) -> dict[str, Json]:
        found = (_record(self._journal, run, seq) for seq in seqs)
        return {"records": [shown(one, FULL) for one in found if one is not None]}

    async def text(self, request: Request) -> StreamingResponse:
        """One field of a record in full, as a text file."""
        run, seq = run_of(request), whole(request, "seq", 0)
        path = request.query_params.get("field", "")
        record = await asyncio.to_thread(_record, self._journal, run, seq)
        if record is None:
            raise UiRefusal(404, f"the run has no record {seq}")
        value = _field(record.record, path)
        return download(value, f"{run}-{seq}-{path}")


def _views(found: Sequence[NumberedRecord], brief: Detail) -> list[Json]:
    streams = (NodeStreamed, ModelStreamed)
    return [shown(one, STREAM if isinstance(one.record, streams) else brief) for one in found]


def _summary(summary: RunSummary) -> dict[str, Json]:
    return dataclasses.asdict(summary)


def _cut(value: object) -> dict[str, Json]:
    text, more = beginning(value, _HEADER_CHARS)
    return {"text": text, "more": more}


def _record(journal: Journal, run: RunId, seq: int) -> NumberedRecord | None:
    found = next(iter(journal.records(run, seq - 1, 1)), None)
    return found if found is not None and found.seq == seq else None


def _field(value: Any, path: str) -> Any:
    """The value at `path` inside a record: field names and list indices."""
    for step in path.split("."):
        if isinstance(value, (list, tuple)) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif dataclasses.is_dataclass(value) and step in {
            one.name for one in dataclasses.fields(value)
        }:
            value = getattr(value, step)
        else:
            raise UiRefusal(404, f"the record has no field {path!r}")
    return value
