"""A real event loop whose clock a test moves on: a limit is over when the test says so.

What is limited to seconds and tested in real time fails where the machine stands still for longer
than that. So the limit is long, and `pass_time` makes it pass at the moment that the test is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _LateLoop(asyncio.SelectorEventLoop):
    passed_s = 0.0

    def time(self) -> float:
        return super().time() + self.passed_s


def run(main: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, on a loop whose time can be made to pass."""
    with asyncio.Runner(loop_factory=_LateLoop) as runner:
        return runner.run(main)


def pass_time(seconds: float) -> None:
    """So many seconds pass at once on the running loop, which must be one of `run`."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, _LateLoop)
    loop.passed_s += seconds
