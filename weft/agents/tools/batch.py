"""The batch form of a tool: one function that answers several calls at once.

Knows how it is declared, not who puts calls together: see `weft.agents.reuse`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.core.errors import BuildError

BatchFunction = Callable[[list[Mapping[str, Any]]], Sequence[object] | Awaitable[Sequence[object]]]
"""Takes the arguments of several calls, gives as many results in their order.

A result that is an exception is the failure of that call alone.
"""


@dataclass(frozen=True, slots=True)
class Batch:
    """At most `most` calls go to `function` at once. Raises: `BuildError`."""

    function: BatchFunction
    most: int = 64

    def __post_init__(self) -> None:
        if self.most < 2:
            raise BuildError(f"a batch of at most {self.most} calls is none", hint="allow 2")
        try:
            inspect.signature(self.function).bind([])
        except (TypeError, ValueError) as error:
            raise BuildError(
                f"the batch form {self.function!r} cannot be called with a list: {error}",
                hint="write def many(calls: list[Mapping[str, Any]]) -> list[Result]",
            ) from error

    @property
    def is_async(self) -> bool:
        """True when the function is awaited, False when it runs in a thread."""
        return inspect.iscoroutinefunction(self.function)


def batch_of(given: Batch | BatchFunction | None) -> Batch | None:
    """`given` as it was meant: a function alone stands for its batch form with the usual bound."""
    return given if isinstance(given, Batch) or given is None else Batch(given)
