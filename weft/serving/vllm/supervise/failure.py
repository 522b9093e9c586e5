"""The failure of a detached serving, stored in its log folder for clients that wait for it."""

from __future__ import annotations

import json
from contextlib import suppress

from weft.core.errors import (
    EngineMissing,
    InternalError,
    ModelNotFound,
    ServeError,
    SpecError,
    StartError,
    WeftError,
)
from weft.serving.vllm.supervise.state_folders import log_folder

_FILE = "failure.json"
_KINDS: dict[str, type[WeftError]] = {
    kind.__name__: kind for kind in (EngineMissing, ModelNotFound, ServeError, SpecError)
}
LOG = "supervisor.log"


def write(serving: str, error: WeftError) -> None:
    """Store the error for `read`."""
    stored = {
        "error": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "stage": error.stage_reached if isinstance(error, StartError) else "",
    }
    with suppress(OSError):
        (log_folder(serving) / _FILE).write_text(json.dumps(stored), "utf-8")


def read(serving: str) -> WeftError | None:
    """The error of a serving that ended; None if it ended without one."""
    try:
        stored = json.loads((log_folder(serving) / _FILE).read_text("utf-8"))
        message, hint = str(stored["message"]), stored["hint"]
        if stored["error"] == StartError.__name__:
            return StartError(message, stage_reached=str(stored["stage"]), hint=hint)
        kind = _KINDS.get(stored["error"], InternalError)
        return kind(message, **({"hint": hint} if hint else {}))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return ServeError(f"the serving {serving} failed and left no readable reason")


def abandoned(serving: str) -> StartError:
    """The error for a supervisor that died without storing a failure."""
    log = log_folder(serving) / LOG
    last = ""
    with suppress(OSError):
        lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
        last = f": {lines[-1]}" if lines else ""
    return StartError(f"the supervisor of {serving} was killed{last}", hint=f"its log: {log}")
