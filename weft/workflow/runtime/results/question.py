"""How a question is run: which node answers, within which bounds, and why it did not.

Knows neither agents nor strategies, and runs nothing: see `weft.workflow.apps.question`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from weft.core.budget import Budget
from weft.core.errors import BuildError
from weft.core.events import Listener, Outcome
from weft.core.ids import NodeId
from weft.core.ports import Clock
from weft.core.ports.journal import Journal
from weft.workflow.document.spec.settings import Durability

T = TypeVar("T")
ANSWER = NodeId("answer")
"""The node that answers."""


@dataclass(frozen=True, slots=True)
class AskSettings:
    """How a question is run: who listens, within which bounds, and where it is recorded.

    concurrency   at most so many calls at once
    deadline_s    seconds until the run ends with what it has
    budget        tokens, seconds and money that may be spent
    journal       where it is recorded; by default in the user's own. Whoever gives it closes it
    durability    when what happened is in the journal: none, exit, async, sync
    run           the run's id; by default one that the journal does not have
    resume        a run that asked the same, to go on with: what is finished is not done again
    """

    listeners: Iterable[Listener] = ()
    concurrency: int | None = None
    deadline_s: float | None = None
    budget: Budget | None = None
    clock: Clock | None = None
    journal: Journal | None = None
    durability: Durability | None = None
    run: str | None = None
    resume: str | None = None


def no_answer_reason(outcome: Outcome) -> str:
    """Why there is no answer, of the node that was to answer."""
    return str(outcome.failure or "nothing was answered")


def run_blocking(make: Callable[[], Coroutine[Any, Any, T]], name: str) -> T:
    """What the coroutine of `weft.<name>` comes to, in an event loop of its own.

    Raises: `BuildError` inside an event loop.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    raise BuildError(f"{name}_sync inside an event loop", hint=f"write: await weft.{name}(...)")
