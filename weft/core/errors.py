"""The tree of the errors that weft raises. Constructing an error has no side effect.

WeftError                    stage, node, retryable, hint
├── BuildError               the program cannot run; raised before anything runs
│   ├── SourceError          a workflow file is wrong at one position: file, line, column
│   ├── CycleError           nodes wait for each other
│   ├── UnknownReference     a name that nothing in scope provides
│   ├── TypeMismatch         an output feeds a parameter that cannot take it
│   ├── DuplicateName        two writers of one name
│   ├── JoinError            a join that can never be decided, or whose branches another scope owns
│   ├── PlacementError       a tool cannot run where the program places it
│   ├── PlanError            a plan is wrong at one position: line, column, step
│   └── InputError           wrong inputs for a run
├── RunError                 the engine ended a node or a run
│   ├── NodeTimeout          one node exceeded its time limit         (retryable)
│   ├── DeadlineExceeded     the run's deadline passed
│   ├── BudgetExceeded       tokens, seconds or money are spent
│   ├── JoinUnsatisfied      too few branches succeeded
│   ├── ExpectationFailed    a value is not what its node expects of it
│   ├── LoopLimit            a loop reached its bound without its condition
│   ├── RecursionLimit       a workflow would run inside itself more often than it may
│   ├── NodeLimit            the run would have more nodes than it may
│   ├── MachineBusy          a check found no free processor in time     (retryable)
│   ├── Cancelled            the run, the branch or the sample was cancelled
│   ├── NodeFailed           a plain exception escaped from a node's own code
│   ├── AgentError           an agent ended without an answer: rounds, steps or budget are used up
│   ├── RouteError           no route to a goal is left, and no person took it over
│   ├── ReasoningError       a strategy ended without an answer
│   ├── SandboxError         a sandbox lacks a protection, or cannot start its program
│   ├── CassetteMiss         a replayed program makes a call that is not in its record
│   ├── ClusterError         a cluster, or the way to it, cannot be used now    (retryable)
│   ├── EffectUnknown        a call that must not be repeated may or may not have been carried out
│   └── StoreError           a store or a journal cannot be opened, read or written
│       ├── RunExists        the journal has a run of this id
│       ├── RunBusy          another process has claimed the run
│       ├── ContentNotFound  no content of that digest is stored
│       ├── ContentMismatch  stored content does not fit its digest
│       └── ContentTooLarge  content has more bytes than its store takes
├── ToolError                a tool call went wrong
│   ├── ToolNotFound         no tool of that name
│   ├── ToolArgumentError    the arguments do not fit the tool's signature
│   ├── ToolResultError      the result does not fit the tool's declared type
│   ├── ToolRaised           the tool's own code raised
│   │   └── NotDone          the tool's own code says that nothing has happened  (retryable)
│   │       └── ToolBreakerOpen    the circuit breaker of the tool refuses the call (retryable)
│   ├── WorkerLost           a worker of a cluster was lost during the call     (retryable)
│   ├── ToolDenied           a person did not approve the call
│   └── ToolLimitError       time, memory or output limit of an isolated tool
├── ModelError               a model call went wrong
│   ├── ModelNotFound        no such model, or its weights are not on this machine
│   ├── ModelRequestError    the server refuses the request as it is
│   │   └── ContextLengthExceeded    the prompt is longer than the model's context
│   ├── ModelUnavailable     cannot connect, 5xx, or a stream that broke (retryable)
│   │   └── ModelBreakerOpen     the circuit breaker of the model refuses the call (retryable)
│   ├── ModelOverloaded      429 or 503, with the server's own delay     (retryable)
│   ├── ModelTimeout         the answer was not complete within the request's time limit
│   ├── ModelOutputError     the output does not fit the requested schema (retryable)
│   │   └── OutputTruncated  max_tokens ended the output inside its value
│   └── CapabilityError      this client or model does not support the request
├── ServeError               a model server cannot be started, kept or planned
│   ├── EngineMissing        no installed vLLM can do what was asked
│   ├── SpecError            serving options that cannot work together
│   └── StartError           the server did not start: the stage it reached, with its last lines
├── BreakerOpen              a circuit breaker refuses a call; its two kinds are above
└── InternalError            a bug in weft: please report it
"""

from __future__ import annotations

from typing import ClassVar

from weft.core.failure import Failure, Stage
from weft.core.foreign import ErrorCause, message_of
from weft.core.usage import Usage

# fmt: off
__all__ = [
    "AgentError", "BreakerOpen", "BudgetExceeded", "BuildError", "Cancelled", "CapabilityError",
    "CassetteMiss", "ClusterError", "ContentMismatch", "ContentNotFound", "ContentTooLarge",
    "ContextLengthExceeded", "CycleError", "DeadlineExceeded", "DuplicateName", "EffectUnknown",
    "EngineMissing", "ExpectationFailed", "Failure", "InputError", "InternalError", "JoinError",
    "JoinUnsatisfied", "LoopLimit", "MachineBusy", "ModelBreakerOpen", "ModelError",
    "ModelNotFound", "ModelOutputError", "ModelOverloaded", "ModelRequestError", "ModelTimeout",
    "ModelUnavailable", "NodeFailed", "NodeLimit", "NodeTimeout", "NotDone", "OutputTruncated",
    "PlacementError", "PlanError", "ReasoningError", "RecursionLimit", "RouteError", "RunBusy",
    "RunError", "RunExists", "SandboxError", "ServeError", "SourceError", "SpecError", "StartError",
    "StoreError", "ToolArgumentError", "ToolBreakerOpen", "ToolDenied", "ToolError",
    "ToolLimitError", "ToolNotFound", "ToolRaised", "ToolResultError", "TypeMismatch",
    "UnknownReference", "WeftError", "WorkerLost",
]
# fmt: on


class WeftError(Exception):
    """Base of all errors that weft raises.

    `message` says what happened, `hint` what to do next, `node` names the node where it happened
    (filled in as the error propagates), `retryable` whether the same call may succeed if repeated.
    `retry_after_s` is the delay that a server asks for, and `cause` the exception behind the error
    as data, where it is known: of an error in another process, or in a record.
    """

    stage: ClassVar[Stage] = "run"
    retryable: bool = False
    retry_after_s: float | None = None
    cause: ErrorCause | None = None

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        node: str | None = None,
        retryable: bool | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.node = node
        self.retryable = self.retryable if retryable is None else retryable
        self.retry_after_s = self.retry_after_s if retry_after_s is None else retry_after_s

    def __str__(self) -> str:
        where = f"{self.node}: " if self.node else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{where}{self.message}{hint}"

    def failure(self) -> Failure:
        """The error as a plain value, for outcomes, events and files."""
        return Failure(type(self).__name__, self.message, self.stage, self.retryable, self.hint)


class BuildError(WeftError):
    """The program cannot run as written; raised before anything runs.

    `path`: the keys that lead to the defect in a document. `others`: further defects.
    """

    stage = "build"
    path: tuple[str | int, ...] = ()
    others: tuple[BuildError, ...] = ()

    @property
    def defects(self) -> tuple[BuildError, ...]:
        """All defects that were found at once, this one first."""
        return (self, *self.others)


class SourceError(BuildError):
    """A workflow file is wrong at one position. `line` and `column` count from 1."""

    def __init__(
        self,
        message: str,
        *,
        file: str = "<text>",
        line: int = 1,
        column: int = 1,
        hint: str | None = None,
        node: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint, node=node)
        self.file = file
        self.line, self.column = line, column

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.file}:{self.line}:{self.column}: {self.message}{hint}"


class CycleError(BuildError):
    """Nodes wait for each other."""


class UnknownReference(BuildError):
    """A reference to a name that nothing in scope provides."""


class TypeMismatch(BuildError):
    """An output schema cannot feed the parameter it is connected to."""


class DuplicateName(BuildError):
    """Two nodes, inputs or outputs claim one name."""


class JoinError(BuildError):
    """A join that can never be decided, or whose branches another scope owns."""


class PlacementError(BuildError):
    """A tool cannot run where the program places it."""


class PlanError(BuildError):
    """A plan that a model or a person wrote is wrong at one position.

    `line` and `column` count from 1 in the plan's text; `step` is the number of the step, None
    without one. `written` is all that the model had written when the error was found.
    """

    def __init__(
        self,
        message: str,
        *,
        line: int = 1,
        column: int = 1,
        step: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.line = line
        self.column = column
        self.step = step
        self.written = ""

    def __str__(self) -> str:
        about = f"step {self.step}: " if self.step is not None else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"plan:{self.line}:{self.column}: {about}{self.message}{hint}"


class InputError(BuildError):
    """The inputs of a run do not fit the workflow's declarations."""


class RunError(WeftError):
    """The engine ended a node or a run."""


class NodeTimeout(RunError):
    """One attempt of a node took longer than its `timeout_s`."""

    retryable = True


class DeadlineExceeded(RunError):
    """The run's deadline passed."""


class BudgetExceeded(RunError):
    """A budget of tokens, seconds or money is spent."""


class JoinUnsatisfied(RunError):
    """Too few branches of a join succeeded."""


class ExpectationFailed(RunError):
    """A value is not what its node expects of it (`expect`, or `accept` of a growing map)."""


class LoopLimit(RunError):
    """A bounded loop reached its bound before its condition held."""


class RecursionLimit(RunError):
    """A workflow would run inside itself more often than its node's `max_depth` allows."""


class MachineBusy(RunError):
    """A check found no free processor in time; nothing is known to be wrong. Try again later."""

    retryable = True


class NodeLimit(RunError):
    """A node expands, and the run would exceed its node limit."""


class Cancelled(RunError):
    """The run, the branch or the sample was cancelled."""


class NodeFailed(RunError):
    """A plain exception escaped from a node's own code."""


class AgentError(RunError):
    """An agent ended without an answer: its rounds, steps or budget are used up."""


class RouteError(RunError):
    """Every route to a goal failed, the goal could not be lowered, and no person took it over."""


class ReasoningError(RunError):
    """A reasoning strategy ended without an answer: its model failed, or it was cut short."""


class SandboxError(RunError):
    """A sandbox lacks a protection, or cannot start its program; none of the program has run."""


class StoreError(RunError):
    """A result store cannot be opened, read or written."""


class RunExists(StoreError):
    """The journal has a run of this id."""


class RunBusy(StoreError):
    """Another process has claimed the run."""


class ContentNotFound(StoreError):
    """A content store has no content of that digest."""


class ContentMismatch(StoreError):
    """Stored content does not fit its digest: it is damaged, or was exchanged."""


class ContentTooLarge(StoreError):
    """Content has more bytes than its store takes."""


class CassetteMiss(RunError):
    """A replayed program makes a call that its record lacks, or has with other content."""


class ClusterError(RunError):
    """A cluster, or the way to it, cannot be used now; nothing is known of calls under way."""

    retryable = True


class EffectUnknown(RunError):
    """A call that must not be repeated may or may not have been carried out; a person must say."""


class BreakerOpen(WeftError):
    """A circuit breaker refuses a call. `retry_after_s`: when it may let the next one through."""


class ToolError(WeftError):
    """A tool call went wrong."""

    stage = "tool"


class ToolNotFound(ToolError):
    """No tool of that name is registered."""


class ToolArgumentError(ToolError):
    """The arguments do not fit the tool's signature."""


class ToolResultError(ToolError):
    """The result does not fit the tool's declared type."""


class ToolRaised(ToolError):
    """The tool's own code raised."""


class NotDone(ToolRaised):
    """The tool's own code says that nothing has happened: its call may be repeated."""

    retryable = True


class ToolBreakerOpen(NotDone, BreakerOpen):
    """The circuit breaker of a tool, or of its server, refuses the call."""


class WorkerLost(ToolError):
    """A worker of a cluster was lost during the call; whether that was carried out is unknown."""

    retryable = True


class ToolDenied(ToolError):
    """A person did not approve the call, so it was not made."""


class ToolLimitError(ToolError):
    """An isolated tool exceeded its time, memory or output limit."""


class ModelError(WeftError):
    """A model call went wrong; `usage` is what it had consumed, where the client knows."""

    stage = "model"
    usage: Usage | None = None


class ModelNotFound(ModelError):
    """No such model, or its weights are not on this machine."""


class ModelRequestError(ModelError):
    """The server refuses the request as it is; repeating it will not help."""


class ContextLengthExceeded(ModelRequestError):
    """The prompt, perhaps with its answer, exceeds the model's context. States lengths only."""


class ModelUnavailable(ModelError):
    """The model cannot be reached, answered 5xx, or its stream broke off."""

    retryable = True


class ModelBreakerOpen(ModelUnavailable, BreakerOpen):
    """The circuit breaker of a model refuses the call."""


class ModelOverloaded(ModelError):
    """The server is overloaded; `retry_after_s` is the delay it asks for, if it gave one."""

    retryable = True


class ModelTimeout(ModelError):
    """The answer was not complete within the request's time limit."""


class ModelOutputError(ModelError):
    """The output does not parse or does not fit the requested schema."""

    retryable = True


class OutputTruncated(ModelOutputError):
    """`max_tokens` ended the output inside its value."""


class CapabilityError(ModelError):
    """This client, model or decoder does not support the request."""


class ServeError(WeftError):
    """A model server cannot be started, kept running or planned."""

    stage = "serve"


class EngineMissing(ServeError):
    """No installed serving engine can do what was asked."""


class SpecError(ServeError):
    """Serving options that cannot work together, or with this model, engine or machine."""


class StartError(ServeError):
    """A server did not become healthy; `stage_reached` is the last stage it reached."""

    def __init__(self, message: str, *, stage_reached: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.stage_reached = stage_reached


class InternalError(WeftError):
    """A bug in weft, not in your program."""

    stage = "internal"

    def __init__(self, message: str, *, node: str | None = None) -> None:
        super().__init__(message, node=node, hint="this is a bug in weft; please report it")


def convert(error: BaseException, node: str | None = None) -> WeftError:
    """Any exception as a `WeftError` that names `node`."""
    if isinstance(error, WeftError):
        if error.node is None:
            error.node = node
        return error
    wrapped = NodeFailed(f"{type(error).__name__}: {message_of(error)}", node=node)
    wrapped.__cause__ = error
    return wrapped
