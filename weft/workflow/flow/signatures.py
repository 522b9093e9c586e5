"""What type checkers verify of the builder's calls: parameters, options and results.

A handle has the type of the value that it stands for. A call with arguments of its function only
is checked in full. Options of the node go into `flow.options(...)` before it, because no signature
can add keywords to those of a function; or keyword arguments go, unchecked, into `args={...}`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import (
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from weft.core.budget import Budget
from weft.core.error_names import ErrorRef
from weft.workflow.flow.handle import Expression
from weft.workflow.flow.python_values import Function

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
Condition = str | int | Expression
"""`~handle`, for a handle of a bool, is an int to type checkers."""
Test = str | bool | Expression | Callable[[Any], object]
JoinMode = Literal["all", "any", "quorum", "first_valid", "best_effort"]


class NodeOptions(TypedDict, total=False):
    """Options of every node; see `weft schema` for each. `name` is the node's own."""

    name: str
    description: str
    when: Condition
    after: object
    writes: Mapping[str, object]
    retry: int | Mapping[str, object]
    retry_on: ErrorRef | Sequence[ErrorRef]
    timeout: float | str
    fallback: object
    default: object
    on_failure: Literal["fail", "skip"]
    expect: Mapping[str, Test]
    cache: bool | Mapping[str, object]
    budget: Mapping[str, object] | Budget
    degrade: object
    weight: float


class ModelOptions(NodeOptions, total=False):
    """Options of a model node: those of every node, and the fields of its request."""

    max_tokens: int
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    repair: int
    presence_penalty: float
    frequency_penalty: float
    repetition_penalty: float
    logit_bias: Mapping[str, float] | Mapping[int, float]
    reasoning_effort: str
    thinking_tokens: int
    extra_body: Mapping[str, object]
    stop: str | Sequence[str]
    seed: int
    decode: str
    warm: bool
    tool_choice: Literal["auto", "none", "required"]
    allow_empty: bool


class NodeSettings(NodeOptions, total=False):
    """Options of a call besides its arguments: those of every node, and those of tools."""

    approve: Condition | None
    alternatives: Sequence[str | Function | Mapping[str, Any]]


class CallOptions(NodeSettings, total=False):
    """Options of a call: its settings, and further arguments of the function."""

    args: Mapping[str, object] | None


def checked_as(_: type[S]) -> Callable[[Callable[..., Any]], S]:
    """Decorates a method that type checkers see as a `S`; at run time it is itself."""

    def decorate(method: Any) -> S:
        return method  # type: ignore[no-any-return]

    return decorate


class CallSignature(Protocol):
    """`flow.tool` and `flow.call`."""

    @overload
    def __call__(
        self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def __call__(
        self, function: Callable[[], Awaitable[T]], /, **options: Unpack[CallOptions]
    ) -> T: ...
    @overload
    def __call__(self, function: Callable[[], T], /, **options: Unpack[CallOptions]) -> T: ...
    @overload
    def __call__(
        self, function: Callable[[A], Awaitable[T]], a: A, /, **options: Unpack[CallOptions]
    ) -> T: ...
    @overload
    def __call__(
        self, function: Callable[[A], T], a: A, /, **options: Unpack[CallOptions]
    ) -> T: ...
    @overload
    def __call__(
        self,
        function: Callable[[A, B], Awaitable[T]],
        a: A,
        b: B,
        /,
        **options: Unpack[CallOptions],
    ) -> T: ...
    @overload
    def __call__(
        self, function: Callable[[A, B], T], a: A, b: B, /, **options: Unpack[CallOptions]
    ) -> T: ...
    @overload
    def __call__(  # type: ignore[overload-cannot-match]
        self,
        function: Callable[..., Awaitable[T]],
        /,
        *arguments: Any,
        args: Mapping[str, object],
        **options: Unpack[NodeSettings],
    ) -> T: ...
    @overload
    def __call__(  # type: ignore[overload-cannot-match]
        self,
        function: Callable[..., T],
        /,
        *arguments: Any,
        args: Mapping[str, object],
        **options: Unpack[NodeSettings],
    ) -> T: ...
    @overload
    def __call__(self, function: str, /, **arguments: Any) -> Any: ...


class ReduceSignature(Protocol):
    """`flow.reduce`."""

    @overload
    def __call__(
        self,
        function: Callable[Concatenate[A, P], Awaitable[T]],
        over: A,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T: ...
    @overload
    def __call__(
        self,
        function: Callable[Concatenate[A, P], T],
        over: A,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T: ...
    @overload
    def __call__(
        self, function: Callable[[A], T], over: A, /, **options: Unpack[CallOptions]
    ) -> T: ...
    @overload
    def __call__(
        self,
        function: Callable[..., T],
        over: object,
        /,
        *,
        args: Mapping[str, object],
        **options: Unpack[NodeSettings],
    ) -> T: ...
    @overload
    def __call__(self, function: str, over: object, /, **arguments: Any) -> Any: ...
