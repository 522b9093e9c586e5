"""Calls of tools and models across the I/O boundary of a run: frozen values, like the events.

A journal stores them, so that no call is made twice and a run can be replayed offline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NewType

from weft.core.errors import Failure
from weft.core.foreign import ErrorCause
from weft.core.ids import NodeId
from weft.core.ports.model import Delta, ModelRequest, Prefilled
from weft.core.values import Completion, Effect, ToolSpec, Usage, constructor

CallId = NewType("CallId", str)
"""`tool:DIGEST#K` or `model:DIGEST#K`: the K-th call (from 0) with one content in one attempt."""

Doneness = Literal["done", "not done", "unknown"]


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The intent to call a tool; written before the call where the effect demands it.

    `key` is the same whenever this call is repeated, in a later attempt or in a resumed run; empty
    where the tool's effect is neither `idempotent` nor `once`.
    `stands_for`: this call is not made, because a person has confirmed that the call `NODE@CALL`
    was carried out: the same one, or one made in its place with other arguments.
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
    """How a tool call ended: with `value` or `failure`. `done`: whether its effect happened.

    `cause`: the exception behind a failure, on which the retry of the node may depend.
    """

    node: NodeId
    attempt: int
    call: CallId
    value: Any
    failure: Failure | None
    done: Doneness
    at_s: float
    cause: ErrorCause | None = None


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """A model call begins. `model` is the name under which the workflow declares it."""

    node: NodeId
    attempt: int
    call: CallId
    model: str
    request: ModelRequest
    at_s: float


@dataclass(frozen=True, slots=True)
class ModelStreamed:
    """Pieces of an answer, in order, each with the seconds of the run at which it came.

    `Prefilled` comes first, where the client reports it.
    """

    node: NodeId
    attempt: int
    call: CallId
    deltas: tuple[tuple[float, Delta | Prefilled], ...]
    at_s: float


@dataclass(frozen=True, slots=True)
class ModelAnswered:
    """How a model call ended: with `completion` or `failure`.

    `prompt_token_ids`: those of the prompt, where the client reports them. `retry_after_s`: the
    delay that an overloaded server asked for. `usage`: what a failed call had consumed, where the
    client reports it.
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
    """A client's answer to a question about its model, when a run first asked it.

    question   `is`: the optional ports that it has, by name; `capabilities`; or a method of
               `Tokenizing` with its arguments, such as `encode` and a text
    """

    model: str
    question: tuple[Any, ...]
    answer: Any
    at_s: float


@dataclass(frozen=True, slots=True)
class ToolsListed:
    """The tools that a server, here called `source`, listed."""

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
