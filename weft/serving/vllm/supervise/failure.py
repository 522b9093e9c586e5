"""Why a detached serving ended, left in its log folder for those who wait for it.

Knows the errors that serving raises.
"""

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


def leave(serving: str, error: WeftError) -> None:
    """Write the error where `found` looks."""
    told = {
        "error": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "stage": error.stage_reached if isinstance(error, StartError) else "",
    }
    with suppress(OSError):
        (log_folder(serving) / _FILE).write_text(json.dumps(told), "utf-8")


def found(serving: str) -> WeftError | None:
    """The error of a serving that ended; None when it ended in order, without one."""
    try:
        told = json.loads((log_folder(serving) / _FILE).read_text("utf-8"))
        message, hint = str(told["message"]), told["hint"]
        if told["error"] == StartError.__name__:
            return StartError(message, stage_reached=str(told["stage"]), hint=hint)
        return _KINDS.get(told["error"], InternalError)(message, **({"hint": hint} if hint else {}))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return ServeError(f"the serving {serving} failed and left no readable reason")


def abandoned(serving: str) -> StartError:
    """The error for a supervisor that died without a word."""
    log = log_folder(serving) / LOG
    last = ""
    with suppress(OSError):
        lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
        last = f": {lines[-1]}" if lines else ""
    return StartError(f"the supervisor of {serving} was killed{last}", hint=f"its log: {log}")
