"""Calls that must not be repeated and whose end nobody knows, as the page shows them.

Which calls these are is told from outside: it knows neither runs nor what goes on with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

from starlette.requests import Request

from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Journal, Letter, Numbered
from weft.serving.ui.asked import run_of
from weft.serving.ui.problem import Refused
from weft.serving.ui.reply import Reply
from weft.serving.ui.shown import Detail, Json, shown

_MOST_CALLS: Final = 50
_BRIEFLY: Final = Detail(4_000, 64, frozenset())
_HELD: Final = frozenset(("running", "asking"))


class Unsettled(Protocol):
    """A call that somebody has to say something of before its run can go on."""

    @property
    def called(self) -> Numbered:
        """The record of its intent."""

    @property
    def ended(self) -> Numbered | None:
        """The record of how it failed, where it did."""

    @property
    def lost(self) -> bool:
        """Whether it was carried out, and only its result is not known."""


Find = Callable[[Iterable[Numbered]], Sequence[Unsettled]]
"""Finds them among the records of a run."""


class Effects:
    """The endpoint that tells of them, and the check of what a person says."""

    def __init__(self, journal: Journal, find: Find) -> None:
        self._journal = journal
        self._find = find

    async def all(self, request: Request) -> Reply:
        """The calls of a run, in the order they were made, and how many there are."""
        run = run_of(request)
        found = await asyncio.to_thread(self._open, run)
        told: list[Json] = [_told(call) for call in found[:_MOST_CALLS]]
        return Reply({"calls": told, "count": len(found)})

    def letter(self, run: RunId, node: NodeId | None, body: dict[str, Any]) -> Letter:
        """What a person says of one call, for whoever resumes the run. Raises: `Refused`."""
        said, seq = body.get("value"), body.get("call")
        if said not in ("done", "repeat") or type(seq) is not int or node is None:
            raise Refused(400, "a confirmation names its node and call, and says done or repeat")
        if said == "repeat" and "returned" in body:
            raise Refused(400, "a call that is repeated has returned nothing")
        if self._journal.summary(run).standing in _HELD:
            hint = "say it when that process has ended, and resume the run then"
            raise Refused(409, "a process has the run, and may know the end of the call soon", hint)
        calls = {call.called.seq: call.called.record for call in self._open(run)}
        if seq not in calls or getattr(calls[seq], "node", None) != node:
            hint = "the page may be older than the run: reload it"
            raise Refused(409, "nobody has to say anything of that call", hint)
        return Letter("confirm", node, {"call": seq, "said": said, "value": body.get("returned")})

    def _open(self, run: RunId) -> Sequence[Unsettled]:
        """None while a process has the run, which may know the end soon, and none in a success."""
        standing = self._journal.summary(run).standing
        if standing in _HELD or standing == "succeeded":
            return ()
        return self._find(self._journal.records(run))


def _told(call: Unsettled) -> dict[str, Json]:
    failure = None if call.ended is None else shown(call.ended, _BRIEFLY)["failure"]
    return {**shown(call.called, _BRIEFLY), "failure": failure, "lost": call.lost}
