"""A function as a tool: `@tool`, its batch form, its isolation, its version.

Calls are run by `weft.agents.tools.invocation`.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, ParamSpec, TypeVar, get_args, overload

from weft.agents.tools.approval import ApprovalRule
from weft.agents.tools.breaker import BreakerLike, breaker_from
from weft.agents.tools.code import object_digest
from weft.agents.tools.module import path_of
from weft.agents.tools.retry import RetryLike, retry_from
from weft.agents.tools.signature import Signature, signature_of
from weft.agents.untrusted.schema import warn_of_contradictions
from weft.core.error_names import ErrorRef
from weft.core.errors import BuildError
from weft.core.ids import is_name
from weft.core.keywords import refuses_unknown_keywords
from weft.core.suggestion import unknown
from weft.core.values import Effect, ToolSpec

BatchFunction = Callable[[list[Mapping[str, Any]]], Sequence[object] | Awaitable[Sequence[object]]]
"""Maps the arguments of several calls to as many results, in order.

A result that is an exception is the failure of that call alone.
"""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch form: `function` handles at most `most` calls at once. Raises: `BuildError`."""

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
        """Whether the function is awaited, or runs in a thread."""
        return inspect.iscoroutinefunction(self.function)


def batch_of(given: Batch | BatchFunction | None) -> Batch | None:
    """`given` as a `Batch`: a function alone gets the default limit."""
    return given if isinstance(given, Batch) or given is None else Batch(given)


_MIB: Final = 1024 * 1024
_LEAST_MEMORY: Final = 128 * _MIB


@dataclass(frozen=True, slots=True)
class Isolation:
    """Run each call of a tool in a fresh subprocess that is killed at its limits.

    timeout_s     seconds of wall time, including the start of the process
    memory_bytes  address space, of each process of the tool (macOS does not enforce it)
    output_bytes  what it prints, and likewise what it returns and logs
    cpu_s         processor seconds; None: only `timeout_s` counts
    file_bytes    the largest file it may write
    env           names of environment variables to pass on. All others, secrets included, are
                  withheld, except for PATH, HOME, TMPDIR, the locale and the time zone

    It protects weft from a tool that loops, blocks, crashes, floods, leaks or leaves processes
    behind: these end as a `ToolLimitError` or a `ToolRaised`, and nothing stays running.

    It is **not a sandbox**. The tool is the same user on the same machine. It can read and delete
    the user's files and the secrets in them, use the network, signal other processes, fill the disk
    with many files, fork until the user's process limit, start its own session on purpose and so
    escape the cleanup, forge its own result, and exploit bugs of the kernel. When weft is killed
    with SIGKILL, the tool's process ends too (on Linux), but not the processes it has started. Run
    untrusted code in a container or a virtual machine.

    The function must be importable by the subprocess (top level of a module or a file). It does not
    see the parent's memory: globals changed at run time, open connections, caches.
    """

    timeout_s: float = 30.0
    memory_bytes: int = 2048 * _MIB
    output_bytes: int = 16 * _MIB
    cpu_s: int | None = None
    file_bytes: int = 256 * _MIB
    env: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if os.name != "posix":
            raise BuildError("isolation needs a POSIX system", hint="leave isolate out here")
        limits = (self.timeout_s, self.output_bytes, self.file_bytes)
        if not all(limit > 0 for limit in limits) or (self.cpu_s is not None and self.cpu_s < 1):
            raise BuildError(f"the limits of an isolation must be positive: {self}")
        if self.memory_bytes < _LEAST_MEMORY:
            raise BuildError(
                f"an isolated tool needs at least {_LEAST_MEMORY:,} bytes of memory to start,"
                f" got {self.memory_bytes:,}"
            )


def version_of(function: Callable[..., Any]) -> str:
    """A digest of the function's code and its dependencies in its package; empty without source.

    Other packages are not included; `@tool(version=...)` declares their changes.
    """
    try:
        return (object_digest(function) or "")[:16]
    except OSError:
        return ""


P = ParamSpec("P")
R = TypeVar("R")


class Tool(Generic[P, R]):
    """A function that programs and models can call by name, with JSON.

    Called directly it is the function itself: no checks, no thread, no process.

    function    the function
    spec        name, description and JSON Schemas
    isolation   the limits of its subprocess, or None when it runs in this process
    timeout_s   the time limit of a call in seconds, or None
    resource    the resource whose slot a call takes, for the engine's limits
    batch       the batch form, or None
    retry       how its calls are repeated, or None
    breaker     when its calls are refused because it fails, or None
    approve     whether calls need a person's approval: a bool, a function of the arguments, or None
    is_declared whether a schema defines the arguments, not the function: see `tool_from_schema`
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        pure: bool = False,
        isolation: Isolation | None = None,
        timeout_s: float | None = None,
        resource: str | None = None,
        batch: Batch | BatchFunction | None = None,
        version: str | None = None,
        effect: Effect = "unknown",
        signature: Signature | None = None,
        retry: RetryLike = None,
        retry_on: ErrorRef | Sequence[ErrorRef] = (),
        approve: ApprovalRule | None = None,
        breaker: BreakerLike = None,
        needs: Sequence[str] = (),
        makes: Sequence[str] = (),
        fill: bool = False,
    ) -> None:
        """Raises: `BuildError` when the function, its name, limits or facts are not valid."""
        self.batch = batch_of(batch)
        self.signature = signature or signature_of(function, keyed=effect == "idempotent")
        self.is_declared = signature is not None
        functools.update_wrapper(self, function)
        self.function = function
        self.spec = ToolSpec(
            _checked_name(name if name is not None else function.__name__),
            self.signature.description,
            self.signature.parameters.schema,
            self.signature.result.schema,
            pure,
            self.batch.most if self.batch is not None else 0,
            version_of(function) if version is None else version,
            checked_effect(pure, effect),
            approve not in (None, False),
            texts_of(needs, "needs"),
            texts_of(makes, "makes"),
            fill,
        )
        check_facts(self.spec)
        if not (approve is None or isinstance(approve, bool) or callable(approve)):
            raise BuildError(
                f"tool {self.spec.name}: approve is {type(approve).__name__}",
                hint="give True, False, or a function of the arguments that returns a bool",
            )
        if inspect.iscoroutinefunction(approve):
            raise BuildError(f"tool {self.spec.name}: the rule `approve` may not be async")
        self.approve = approve
        warn_of_contradictions(self.spec.name, self.spec.parameters)
        if timeout_s is not None and not timeout_s > 0:
            raise BuildError(f"tool {self.spec.name}: timeout_s must be positive, got {timeout_s}")
        self.isolation = isolation
        self._check_batch()
        self.import_path = path_of(function) if isolation is not None else None
        self.timeout_s = timeout_s
        self.resource = resource
        self.retry = retry_from(self.spec.name, retry, retry_on)
        self.breaker = breaker_from(self.spec.name, breaker)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.spec.name}>"

    def _check_batch(self) -> None:
        if self.batch is None:
            return
        if self.isolation is not None:
            raise BuildError(
                f"tool {self.spec.name}: a batch form runs in this process, not in one of its own",
                hint="leave out `batch` or `isolate`",
            )
        if self.signature.key is not None:
            raise BuildError(
                f"tool {self.spec.name}: a batch form gets no idempotency keys",
                hint="leave out `batch` or the parameter",
            )

    @property
    def is_async(self) -> bool:
        """Whether the function is awaited, or runs in a thread."""
        return inspect.iscoroutinefunction(self.function)

    def named(self, name: str) -> Tool[P, R]:
        """The same tool under another name. Raises: `BuildError` when it is no identifier."""
        renamed = copy.copy(self)
        renamed.spec = dataclasses.replace(self.spec, name=_checked_name(name))
        return renamed

    def declared(
        self,
        *,
        isolation: Isolation | None = None,
        effect: Effect | None = None,
        approve: ApprovalRule | None = None,
        needs: Sequence[str] | None = None,
        makes: Sequence[str] | None = None,
        fill: bool | None = None,
    ) -> Tool[P, R]:
        """The same tool with further declarations by its user.

        Raises: `BuildError` when they contradict the tool.
        """
        return Tool(
            self.function,
            name=self.spec.name,
            pure=self.spec.pure,
            isolation=isolation or self.isolation,
            timeout_s=self.timeout_s,
            resource=self.resource,
            batch=self.batch if isolation is None else None,
            version=self.spec.version,
            effect=effect or self.spec.effect,
            signature=self._own_signature(isolation),
            retry=self.retry,
            approve=self.approve if approve is None else approve,
            breaker=self.breaker,
            needs=self.spec.needs if needs is None else needs,
            makes=self.spec.makes if makes is None else makes,
            fill=self.spec.fill if fill is None else fill,
        )

    def _own_signature(self, isolation: Isolation | None) -> Signature | None:
        if self.is_declared and isolation is not None:
            raise BuildError(
                f"tool {self.spec.name}: a tool from a schema runs in this process",
                hint="leave out `isolate`, or declare a function with @weft.tool",
            )
        return self.signature if self.is_declared else None


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    pure: bool = False,
    isolate: Isolation | bool = False,
    timeout_s: float | None = None,
    resource: str | None = None,
    batch: Batch | BatchFunction | None = None,
    version: str | None = None,
    effect: Effect = "unknown",
    retry: RetryLike = None,
    retry_on: ErrorRef | Sequence[ErrorRef] = (),
    approve: ApprovalRule | None = None,
    breaker: BreakerLike = None,
    needs: Sequence[str] = (),
    makes: Sequence[str] = (),
    fill: bool = False,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


@refuses_unknown_keywords
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    pure: bool = False,
    isolate: Isolation | bool = False,
    timeout_s: float | None = None,
    resource: str | None = None,
    batch: Batch | BatchFunction | None = None,
    version: str | None = None,
    effect: Effect = "unknown",
    retry: RetryLike = None,
    retry_on: ErrorRef | Sequence[ErrorRef] = (),
    approve: ApprovalRule | None = None,
    breaker: BreakerLike = None,
    needs: Sequence[str] = (),
    makes: Sequence[str] = (),
    fill: bool = False,
) -> Tool[..., Any] | Callable[[Callable[..., Any]], Tool[..., Any]]:
    """Make a typed function, sync or async, a tool: `@tool` or `@tool(timeout_s=5)`.

    A JSON Schema describes parameters and result, from annotations and docstring (Google, NumPy or
    reST). The function stays callable as before. Called as a tool, a sync function runs in a
    thread, an async one in the caller's task, and `isolate` moves either to a subprocess.

    Args:
        name: the tool's name; the function's own by default
        pure: equal arguments give equal results, without side effects
        isolate: limits of a subprocess for each call, or True for the default ones
        timeout_s: seconds a call may take; a function in a thread is then abandoned, not stopped,
            and a wait for a thread is not counted
        resource: the resource whose slot a call takes, for the engine's limits
        batch: a function for several calls at once: it takes a list of their arguments and returns
            as many results, in order; an exception among them is that call's failure
        version: to be changed when the results may change; by default a digest of the function's
            code and of its dependencies in its package
        approve: True: each call in a run needs a person's approval, and the run pauses until then.
            A function of the arguments (a mapping) decides for each call. False: also calls that
            a model requests of a `once` tool need none. See docs/tools.md
        effect: the effect of a call on the world (see `ToolSpec`). An `idempotent` tool gets the
            idempotency key of its call with `weft.idempotency_key()`, or in a parameter
            `idempotency_key: str`, which models do not see. A tool whose effect is `once` is not
            called again for the same call, unless it raised `weft.NotDone`
        retry: how often a node or an agent tries a call, the first time included, where the node
            has no `retry` of its own; or a mapping of `attempts`, `delay`, `factor`, `max_delay`
            (seconds) and `jitter`. Repeated are failures that may go away: lost connections,
            timeouts, HTTP 408, 425, 429 and 5xx
        retry_on: further exceptions (classes, or names as `module.Class`) and HTTP statuses that
            are repeated
        breaker: when calls are refused because the tool keeps failing: the number of failures, or
            a `weft.Breaker`. A declaration of the tool in a workflow may have another
        needs: facts that have to hold before a call: `at({room})`, `not holding(*)`. An agent that
            knows the facts of its world rehearses its plan by them. See docs/planning.md
        makes: facts that hold after a call: `open({door})`; `not at(*)` undoes such facts first
        fill: a rehearsal may add calls of this tool to a plan that lacks them

    Raises: `BuildError`, with file and line, for a function that JSON cannot call: parameters
    without annotation, *args, **kwargs, types without a JSON Schema.
    """

    def made(function: Callable[..., Any]) -> Tool[..., Any]:
        return Tool(
            function,
            name=name,
            pure=pure,
            isolation=_isolation(isolate, timeout_s),
            timeout_s=timeout_s,
            resource=resource,
            batch=batch,
            version=version,
            effect=effect,
            retry=retry,
            retry_on=retry_on,
            approve=approve,
            breaker=breaker,
            needs=needs,
            makes=makes,
            fill=fill,
        )

    return made if function is None else made(function)


def _isolation(isolate: Isolation | bool, timeout_s: float | None) -> Isolation | None:
    if isinstance(isolate, Isolation):
        return isolate
    if not isolate:
        return None
    return Isolation() if timeout_s is None else Isolation(timeout_s=timeout_s)


def checked_effect(pure: bool, effect: Effect) -> Effect:
    """What a tool's effect is, which is none for a pure one. Raises: `BuildError`."""
    if effect not in get_args(Effect):
        raise unknown(BuildError, "effect", effect, get_args(Effect))
    if pure and effect not in ("pure", "unknown"):
        raise BuildError(f"a pure tool has no effect, so it is not {effect}", hint="leave out one")
    return "pure" if pure else effect


def texts_of(given: Sequence[str], key: str) -> tuple[str, ...]:
    """The facts of `needs` or `makes`. Raises: `BuildError` for what is no list of texts."""
    if isinstance(given, str) or not all(isinstance(text, str) for text in given):
        hint = f"write {key}=['at({{room}})']"
        raise BuildError(f"{key} is no list of facts: {given!r:.60}", hint=hint)
    return tuple(given)


def check_facts(spec: ToolSpec) -> None:
    """Check the facts of a tool, if it declares any. Raises: `BuildError`."""
    if spec.needs or spec.makes or spec.fill:
        from weft.planner.rehearsal.tool_facts import tool_facts

        tool_facts(spec)


def _checked_name(name: str) -> str:
    if not is_name(name):
        raise BuildError(
            f"{name!r} cannot name a tool",
            hint="use letters, digits and _, not starting with a digit: @tool(name='word_count')",
        )
    return name
