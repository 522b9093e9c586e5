"""Tools of runs that have no border of their own: what must not be repeated is not repeated.

Knows no journal: what is known of a call is known for as long as its run is.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final
from weakref import WeakKeyDictionary

from weft.core.ids import RunId
from weft.core.ports import ToolRunner
from weft.core.values import Effect
from weft.engine.cassette.book import CallBook
from weft.engine.cassette.log import CallLog, Write
from weft.engine.cassette.tools import GUARDED, RecordingTools
from weft.engine.effects import EFFECTS, EffectLedger
from weft.engine.place import Place

_LOGS: Final[WeakKeyDictionary[EffectLedger, CallLog]] = WeakKeyDictionary()


class GuardedTools(RecordingTools):
    """Implements `ToolRunner` over `inner`, and `BatchRunner` where `inner` does.

    Of whatever run the calls are made in: where its calls pass a border (see
    `weft.workflow.border`), they pass here as they are.
    """

    def __init__(self, inner: ToolRunner) -> None:
        super().__init__(inner, unrecorded_log("tools"))

    def _here(self, effect: Effect) -> tuple[CallBook, Place] | None:
        scope = EFFECTS.get()
        if scope is None or scope.ledger.guarded or effect not in GUARDED:
            return None
        if scope.ledger not in _LOGS:
            _LOGS[scope.ledger] = unrecorded_log("run")
        return _LOGS[scope.ledger], Place(scope.node, scope.attempt)


def unrecorded_log(
    name: str, now_s: Callable[[], float] = lambda: 0.0, write: Write | None = None
) -> CallLog:
    """The calls of a run that nobody records; `write` is told of them as they are made.

    Idempotency keys are its own: another run with the same inputs makes its calls for itself.
    """
    return CallLog(RunId(f"{name}-{uuid.uuid4().hex}"), now_s, write)
