"""Every error weft raises on purpose, in one tree. Constructing an error has no side effect.

WeftError                    stage, node, retryable, hint
├── BuildError               a program that cannot run; found before anything runs
│   ├── SourceError          a workflow file is wrong at a place: file, line, column
│   ├── CycleError           nodes wait for each other
│   ├── UnknownReference     a name that nothing in reach provides
│   ├── TypeMismatch         an output feeds a parameter that cannot take it
│   ├── DuplicateName        two writers of one name
│   ├── JoinError            a join that can never be decided, or whose branches nobody owns
│   ├── PlanError            a plan is wrong at a place: line, column, step
│   └── InputError           a run was given wrong inputs
├── RunError                 the engine ended a node or a run
│   ├── NodeTimeout          one node took longer than it may           (retryable)
│   ├── DeadlineExceeded     the run's deadline passed
│   ├── BudgetExceeded       tokens, seconds or money are spent
│   ├── JoinUnsatisfied      too few branches succeeded
│   ├── LoopLimit            a loop reached its bound without its condition
│   ├── NodeLimit            the run would have more nodes than it may
│   ├── MachineBusy          a check found no free processor in time     (retryable)
│   ├── Cancelled            somebody cancelled the run, the branch or the sample
│   ├── NodeFailed           a plain exception escaped from a node's own code
│   ├── AgentError           an agent ended without an answer: rounds, steps or ways are used up
│   ├── RouteError           no way is left to a goal, and nobody took it over
│   ├── ReasoningError       a strategy came to no answer at all
│   ├── SandboxError         a program cannot be run as safely as asked, or not at all
│   ├── CassetteMiss         a replayed program asks for what its record does not have
│   ├── EffectUnknown        nobody knows whether a call that must not be repeated was carried out
│   └── StoreError           a store or a journal cannot be opened, read or written
│       ├── RunExists        the journal has a run of this id
│       └── RunBusy          another process has the run
├── ToolError                a tool call went wrong
│   ├── ToolNotFound         no tool of that name
│   ├── ToolArgumentError    the arguments do not fit the tool's signature
│   ├── ToolResultError      the tool returned what it does not promise
│   ├── ToolRaised           the tool's own code raised
│   │   └── NotDone          and says that nothing has happened  (retryable)
│   └── ToolLimitError       time, memory or output limit of an isolated tool
├── ModelError               a model call went wrong
│   ├── ModelNotFound        no such model, or its weights are not here
│   ├── ModelRequestError    the server refuses the request as it is
│   │   └── ContextLengthExceeded    the prompt is longer than the model's context
│   ├── ModelUnavailable     cannot connect, 5xx, or a stream that broke (retryable)
│   ├── ModelOverloaded      429 or 503, with the server's own delay     (retryable)
│   ├── ModelTimeout         the answer was not complete within the request's time
│   ├── ModelOutputError     the output does not fit the schema asked for (retryable)
│   └── CapabilityError      this client or model cannot do what was asked
├── ServeError               a model server cannot be started, kept or planned
│   ├── EngineMissing        no vLLM is installed for what was asked
│   ├── SpecError            a combination of serving options that cannot work
│   └── StartError           the server did not come up; says at which stage, with its last lines
└── InternalError            a bug in weft: please report it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from weft.core.values import Usage

__all__ = [
    "AgentError",
    "BudgetExceeded",
    "BuildError",
    "Cancelled",
    "CapabilityError",
    "CassetteMiss",
    "ContextLengthExceeded",
    "CycleError",
    "DeadlineExceeded",
    "DuplicateName",
    "EffectUnknown",
    "EngineMissing",
    "Failure",
    "InputError",
    "InternalError",
    "JoinError",
    "JoinUnsatisfied",
    "LoopLimit",
    "MachineBusy",
    "ModelError",
    "ModelNotFound",
    "ModelOutputError",
    "ModelOverloaded",
    "ModelRequestError",
    "ModelTimeout",
    "ModelUnavailable",
    "NodeFailed",
    "NodeLimit",
    "NodeTimeout",
    "NotDone",
    "PlanError",
    "ReasoningError",
    "RouteError",
    "RunBusy",
    "RunError",
    "RunExists",
    "SandboxError",
    "ServeError",
    "SourceError",
    "SpecError",
    "StartError",
    "StoreError",
    "ToolArgumentError",
    "ToolError",
    "ToolLimitError",
    "ToolNotFound",
    "ToolRaised",
    "ToolResultError",
    "TypeMismatch",
    "UnknownReference",
    "WeftError",
]

Stage = Literal["build", "run", "tool", "model", "serve", "internal"]


class WeftError(Exception):
    """Base of all errors weft raises on purpose.

    `message` says what happened, `hint` what to do next, `node` names the node where it happened
    (filled in on the way up), `retryable` whether the same call may succeed when repeated.
    """

    stage: ClassVar[Stage] = "run"
    retryable: bool = False

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        node: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.node = node
        if retryable is not None:
            self.retryable = retryable

    def __str__(self) -> str:
        where = f"{self.node}: " if self.node else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{where}{self.message}{hint}"

    def failure(self) -> Failure:
        """The error as a plain value, for outcomes, events and files."""
        return Failure(type(self).__name__, self.message, self.stage, self.retryable, self.hint)


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as data: what a `WeftError` says, without the exception and its traceback."""

    error: str
    message: str
    stage: Stage = "run"
    retryable: bool = False
    hint: str | None = None

    def __str__(self) -> str:
        return f"{self.error}: {self.message}" + (f" ({self.hint})" if self.hint else "")


class BuildError(WeftError):
    """The program cannot run as it is written; raised before anything runs."""

    stage = "build"


class SourceError(BuildError):
    """A workflow file is wrong at one place. `line` and `column` count from 1."""

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
    """A reference to a name that nothing in reach provides."""


class TypeMismatch(BuildError):
    """An output schema cannot feed the parameter it is connected to."""


class DuplicateName(BuildError):
    """Two nodes, inputs or outputs claim one name."""


class JoinError(BuildError):
    """A join that can never be decided, or that reaches into branches which another scope owns."""


class PlanError(BuildError):
    """A plan that a model or a person wrote is wrong at one place.

    `line` and `column` count from 1 in the plan's text, `step` is the number of the step it is
    about; None where there is none. `written` is all that a model had written when it was found.
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
    """The inputs given to a run do not fit what the workflow declares."""


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


class LoopLimit(RunError):
    """A bounded loop reached its bound before its condition held."""


class MachineBusy(RunError):
    """Nothing is known to be wrong: a check found no free processor in time. Come back later."""

    retryable = True


class NodeLimit(RunError):
    """A node expands, and the run would have more nodes than it may."""


class Cancelled(RunError):
    """Somebody cancelled the run, the branch or the sample."""


class NodeFailed(RunError):
    """A plain exception escaped from a node's own code."""


class AgentError(RunError):
    """An agent ended without an answer: its rounds, steps or budget are used up."""


class RouteError(RunError):
    """Every way to a goal failed, the goal could not be lowered, and nobody took it over."""


class ReasoningError(RunError):
    """A reasoning strategy came to no answer: its model could not be asked, or it was cut short."""


class SandboxError(RunError):
    """A sandbox lacks a protection, or cannot start its program; nothing of it has run."""


class StoreError(RunError):
    """A result store cannot be opened, read or written."""


class RunExists(StoreError):
    """The journal has a run of this id."""


class RunBusy(StoreError):
    """Another process has the run."""


class CassetteMiss(RunError):
    """A program that is replayed makes a call that its record does not have, or not like this."""


class EffectUnknown(RunError):
    """Nobody knows whether a call that must not be repeated was carried out; a person knows."""


class ToolError(WeftError):
    """A tool call went wrong."""

    stage = "tool"


class ToolNotFound(ToolError):
    """No tool of that name is registered."""


class ToolArgumentError(ToolError):
    """The arguments do not fit the tool's signature."""


class ToolResultError(ToolError):
    """The tool returned a value of a type it does not promise."""


class ToolRaised(ToolError):
    """The tool's own code raised."""


class NotDone(ToolRaised):
    """The tool's own code says that nothing has happened: its call may be made again."""

    retryable = True


class ToolLimitError(ToolError):
    """An isolated tool ran over its time, memory or output limit."""


class ModelError(WeftError):
    """A model call went wrong; `usage` is what it had consumed, where the client knows."""

    stage = "model"
    usage: Usage | None = None


class ModelNotFound(ModelError):
    """No such model, or its weights are not on this machine."""


class ModelRequestError(ModelError):
    """The server refuses the request as it is; repeating it will not help."""


class ContextLengthExceeded(ModelRequestError):
    """The prompt, perhaps with its answer, exceeds the model's context. Tells lengths only."""


class ModelUnavailable(ModelError):
    """The model cannot be reached, answered 5xx, or its stream broke off."""

    retryable = True


class ModelOverloaded(ModelError):
    """The server asks us to come back later; `retry_after_s` is its own delay, if it gave one."""

    retryable = True

    def __init__(
        self,
        message: str,
        *,
        retry_after_s: float | None = None,
        hint: str | None = None,
        node: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint, node=node)
        self.retry_after_s = retry_after_s


class ModelTimeout(ModelError):
    """The answer was not complete within the request's own time."""


class ModelOutputError(ModelError):
    """The output does not parse or does not fit the schema that was asked for."""

    retryable = True


class CapabilityError(ModelError):
    """This client, model or decoder cannot do what the request asks for."""


class ServeError(WeftError):
    """A model server cannot be started, kept running or planned."""

    stage = "serve"


class EngineMissing(ServeError):
    """No serving engine is installed that can do what was asked."""


class SpecError(ServeError):
    """Serving options that cannot work together, or not with this model, engine or machine."""


class StartError(ServeError):
    """A server did not become healthy; `stage_reached` says how far it came."""

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
    wrapped = NodeFailed(f"{type(error).__name__}: {_said(error)}", node=node)
    wrapped.__cause__ = error
    return wrapped


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a foreign class may have any `__str__`
        return "its message cannot be read"


def error_of_failure(failure: Failure) -> WeftError:
    """An error of the class, with the words, that `failure` tells of."""
    kind = next((each for each in _tree(WeftError) if each.__name__ == failure.error), WeftError)
    if kind is InternalError:
        return InternalError(failure.message)
    error = kind(failure.message, hint=failure.hint)
    error.retryable = failure.retryable
    return error


def _tree(kind: type[WeftError]) -> Iterator[type[WeftError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _tree(each)
