"""Foreign exceptions as errors of weft; the one place that wraps them."""

from __future__ import annotations

from weft.core.errors import NodeFailed, WeftError


def convert(error: BaseException, node: str | None = None) -> WeftError:
    """Any exception as a `WeftError` that names `node`."""
    if isinstance(error, WeftError):
        if error.node is None:
            error.node = node
        return error
    wrapped = NodeFailed(f"{type(error).__name__}: {_said(error)}", node=node)
    wrapped.__cause__ = error
    return wrapped


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a foreign class may have any `__str__`
        return "its message cannot be read"
