"""The one border at which exceptions of torch, transformers and llguidance become weft's."""

from __future__ import annotations

from weft.core.errors import ModelUnavailable, WeftError


def converted(what: str, error: BaseException) -> WeftError:
    """`error` itself where it is weft's own; else one that says `what` went wrong.

    Not retryable: what runs in this process fails again in the same way.
    """
    if isinstance(error, WeftError):
        return error
    wrapped = ModelUnavailable(f"{what}: {type(error).__name__}: {error}", retryable=False)
    wrapped.__cause__ = error
    return wrapped
