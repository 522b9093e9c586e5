"""The experiments of a journal: evaluations and studies, each read by the process that serves.

`ExperimentReaders` provides them, as plain data. The page asks for parts of bounded size.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request

from weft.core.ids import RunId
from weft.core.ports.journal import Journal
from weft.core.redaction import hidden
from weft.serving.ui.record_view import Json
from weft.serving.ui.responses import JsonReply, UiRefusal, run_of, whole

_MOST_EXPERIMENTS: Final = 50
_MOST_CASES: Final = 500
_MOST_ITEMS: Final = 2_000
_CHARS: Final = 20_000


@dataclass(frozen=True, slots=True)
class ExperimentReaders:
    """Read experiments of a journal; all of them block.

    latest      (journal, after, limit): so many experiments, the newest first, and whether there
                are more
    evaluation  (journal, run, baseline or None, after, limit): an evaluation with so many cases
    study       (journal, run): a study
    """

    latest: Callable[[Journal, int, int], tuple[Sequence[Mapping[str, Any]], bool]]
    evaluation: Callable[[Journal, RunId, RunId | None, int, int], Mapping[str, Any]]
    study: Callable[[Journal, RunId], Mapping[str, Any]]


class ExperimentEndpoints:
    """The endpoints that read experiments; without readers there are none."""

    def __init__(self, journal: Journal, readers: ExperimentReaders | None) -> None:
        self._journal = journal
        self._readers = readers

    async def latest(self, request: Request) -> JsonReply:
        """A page of the experiments, the newest first."""
        if self._readers is None:
            return JsonReply({"experiments": [], "more": False})
        after, limit = _part(request, _MOST_EXPERIMENTS)
        found, more = await asyncio.to_thread(self._readers.latest, self._journal, after, limit)
        return JsonReply({"experiments": bounded(list(found)), "more": more})

    async def evaluation(self, request: Request) -> JsonReply:
        """An evaluation and a page of its cases; with `baseline`, compared with that one."""
        after, limit = _part(request, _MOST_CASES)
        named = request.query_params.get("baseline")
        baseline = RunId(named) if named else None
        read, run = self._given().evaluation, run_of(request)
        found = await asyncio.to_thread(read, self._journal, run, baseline, after, limit)
        return JsonReply(bounded(found))

    async def study(self, request: Request) -> JsonReply:
        """A study: its verdict and its front."""
        found = await asyncio.to_thread(self._given().study, self._journal, run_of(request))
        return JsonReply(bounded(found))

    def _given(self) -> ExperimentReaders:
        if self._readers is None:
            hint = "`weft ui` shows them"
            raise UiRefusal(404, "this page shows no experiments", hint)
        return self._readers


def _part(request: Request, most: int) -> tuple[int, int]:
    return whole(request, "after", 0), min(most, max(1, whole(request, "limit", most)))


def bounded(value: Any) -> Json:
    """`value` as JSON without secrets: texts and lists cut, numbers that do not exist null."""
    return _bounded(hidden(value))


def _bounded(value: Any) -> Json:
    match value:
        case str():
            return value[:_CHARS]
        case float():
            return value if math.isfinite(value) else None
        case None | bool() | int():
            return value
        case Mapping():
            part = list(value.items())[:_MOST_ITEMS]
            return {str(key)[:_CHARS]: _bounded(each) for key, each in part}
        case list() | tuple():
            return [_bounded(each) for each in value[:_MOST_ITEMS]]
        case _:
            return str(value)[:_CHARS]
