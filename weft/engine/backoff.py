"""How long to wait before the next attempt: exponential, with jitter that a seed repeats. Pure."""

from __future__ import annotations

from random import Random

from weft.core.errors import WeftError
from weft.core.ids import NodeId
from weft.engine.node import Retry


def delay_s(retry: Retry, attempt: int, node: NodeId, error: WeftError, seed: int) -> float:
    """Seconds to wait after attempt `attempt` (from 1) failed with `error`.

    Never less than the `retry_after_s` an error carries. The same arguments give the same delay.
    """
    try:
        delay = min(retry.delay_s * retry.factor ** (attempt - 1), retry.max_delay_s)
    except OverflowError:
        delay = retry.max_delay_s
    draw = Random(f"{seed}:{node}:{attempt}").random()  # noqa: S311 - jitter, not a secret
    delay *= 1 + retry.jitter * (2 * draw - 1)
    asked_s = getattr(error, "retry_after_s", None)
    return max(delay, asked_s) if isinstance(asked_s, int | float) else delay
