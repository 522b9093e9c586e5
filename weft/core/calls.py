"""What passes the I/O boundary of a run: calls of tools and models, frozen values like the events.

A journal keeps them, so that a call is not made twice and a run can be repeated without its models
and tools.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NewType

from weft.core.errors import Failure
from weft.core.ids import NodeId
from weft.core.ports.model import Delta, ModelRequest, Prefilled
from weft.core.values import Completion, Effect, ToolSpec, Usage, constructor

CallId = NewType("CallId", str)
"""`tool:DIGEST#K` or `model:DIGEST#K`: the K-th call (from 0) with one content in one attempt."""

Doneness = Literal["done", "not done", "unknown"]


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The intent: written before the tool is called, and before it is called where that matters.

    `key` is the same whenever this call is repeated, in a later attempt or in a resumed run; empty
    where the tool's effect is neither `idempotent` nor `once`.
    `stands_for`: this call is not made, since a person says that the call `NODE@CALL` was carried
    out: the same one, or one that was made in its place with other arguments.
    """

    node: NodeId
    attempt: int
    call: CallId
    tool: str
    arguments: Any
    effect: Effect
    key: str
    at_s: float
    stands_for: str = ""


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """How a tool call ended: with `value`, or with `failure`. `done`: did its effect happen?"""

    node: NodeId
    attempt: int
    call: CallId
    value: Any
    failure: Failure | None
    done: Doneness
    at_s: float


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """A model is asked. `model` is the name under which the workflow declares it."""

    node: NodeId
    attempt: int
    call: CallId
    model: str
    request: ModelRequest
    at_s: float


@dataclass(frozen=True, slots=True)
class ModelStreamed:
    """Pieces of an answer, in order, with the seconds of the run at which each came.

    Where the client tells that the prompt has been computed, that is the first of them.
    """

    node: NodeId
    attempt: int
    call: CallId
    deltas: tuple[tuple[float, Delta | Prefilled], ...]
    at_s: float


@dataclass(frozen=True, slots=True)
class ModelAnswered:
    """How a model call ended: with `completion`, or with `failure`.

    `prompt_token_ids`: those of the prompt, where the client told. `retry_after_s`: after how long
    a server that refused wants to be asked again, where it said so. `usage`: what a call that
    failed had consumed, where the client told.
    """

    node: NodeId
    attempt: int
    call: CallId
    completion: Completion | None
    failure: Failure | None
    at_s: float
    prompt_token_ids: tuple[int, ...] = ()
    retry_after_s: float | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class ModelTold:
    """What a client said of its model, when a run asked for the first time.

    question   `is`: the optional ports that it has, by name; `capabilities`; or a method of
               `Tokenizing` with its arguments, such as `encode` and a text
    """

    model: str
    question: tuple[Any, ...]
    answer: Any
    at_s: float


@dataclass(frozen=True, slots=True)
class ToolsListed:
    """The tools that a server, here called `source`, offered when it was asked."""

    source: str
    specs: tuple[ToolSpec, ...]
    at_s: float


tool_called = constructor(ToolCalled)
tool_returned = constructor(ToolReturned)

CallEvent = (
    ToolCalled
    | ToolReturned
    | ModelCalled
    | ModelStreamed
    | ModelAnswered
    | ModelTold
    | ToolsListed
)
