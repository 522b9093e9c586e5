"""What type checkers verify of models, maps, joins, loops, questions, values and inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar, Unpack, overload

from weft.workflow.flow.handle import Expression
from weft.workflow.flow.python_values import Function
from weft.workflow.flow.signatures import Condition, ModelOptions, NodeOptions

S = TypeVar("S")
T = TypeVar("T")
A = TypeVar("A")
AllOf = Literal["all", "quorum", "best_effort"]
OneOf = Literal["any", "first_valid"]


class TextOptions(ModelOptions, total=False):
    """Options of a model node that leave its value a text, or what its `schema` says."""

    system: str | None
    messages: Sequence[object] | Expression | None
    args: Mapping[str, object] | None


class AnswerOptions(TextOptions, total=False):
    """Options of a model node that answers by a strategy or by an agent."""

    tools: Sequence[str | Function]
    think: str | Mapping[str, object] | None
    agent: str | Mapping[str, object] | None


class EnoughOptions(NodeOptions, total=False):
    """Options of a node that waits for enough of several values; `mode` is its own."""

    k: int | None
    valid: Condition | Callable[[Any], object] | None
    otherwise: object


class MapOptions(EnoughOptions, total=False):
    """Options of a map."""

    width: int | None
    grow: Mapping[str, object] | None
    on: str | None


class ModelSignature(Protocol):
    """`flow.model`: a text; with `schema` a type, an instance; with `samples`, a list."""

    @overload
    def __call__(
        self, model: str, prompt: str | Expression = "", /, **options: Unpack[TextOptions]
    ) -> str: ...
    @overload
    def __call__(
        self,
        model: str,
        prompt: str | Expression = "",
        /,
        *,
        schema: type[S],
        samples: int,
        **options: Unpack[AnswerOptions],
    ) -> list[S]: ...
    @overload
    def __call__(
        self,
        model: str,
        prompt: str | Expression = "",
        /,
        *,
        schema: type[S],
        **options: Unpack[AnswerOptions],
    ) -> S: ...
    @overload
    def __call__(
        self,
        model: str,
        prompt: str | Expression = "",
        /,
        *,
        schema: object = None,
        samples: int | None = None,
        **options: Unpack[AnswerOptions],
    ) -> Any: ...


class MapSignature(Protocol):
    """`flow.map`: the list of what the body makes of each item."""

    @overload
    def __call__(
        self,
        over: Sequence[A],
        body: Callable[[A], T],
        /,
        *,
        mode: AllOf = "all",
        **options: Unpack[MapOptions],
    ) -> list[T]: ...
    @overload
    def __call__(
        self,
        over: Sequence[A],
        body: Callable[[A, int], T],
        /,
        *,
        mode: AllOf = "all",
        **options: Unpack[MapOptions],
    ) -> list[T]: ...
    @overload
    def __call__(
        self,
        over: Sequence[A],
        body: Callable[[A], T] | Callable[[A, int], T],
        /,
        *,
        mode: OneOf,
        **options: Unpack[MapOptions],
    ) -> Any: ...
    @overload
    def __call__(
        self,
        over: Expression,
        body: Callable[..., object],
        /,
        *,
        mode: AllOf | OneOf = "all",
        **options: Unpack[MapOptions],
    ) -> Any: ...


class JoinSignature(Protocol):
    """`flow.join`: the list of the branches' values, or the value of the first."""

    @overload
    def __call__(
        self, *branches: T, mode: AllOf = "all", **options: Unpack[EnoughOptions]
    ) -> list[T]: ...
    @overload
    def __call__(self, *branches: T, mode: OneOf, **options: Unpack[EnoughOptions]) -> T: ...


class LoopSignature(Protocol):
    """`flow.loop`: what the body made last."""

    @overload
    def __call__(
        self,
        start: A,
        body: Callable[[A], T],
        /,
        *,
        until: Condition | Callable[[A], object],
        max: int,
        on_limit: Literal["last", "fail"] = "last",
        **options: Unpack[NodeOptions],
    ) -> T: ...
    @overload
    def __call__(
        self,
        start: A,
        body: Callable[[A, int], T],
        /,
        *,
        until: Condition | Callable[[A], object],
        max: int,
        on_limit: Literal["last", "fail"] = "last",
        **options: Unpack[NodeOptions],
    ) -> T: ...


class AskSignature(Protocol):
    """`flow.ask`: the answer, a text unless a type or a JSON Schema says otherwise."""

    @overload
    def __call__(self, question: str | Expression, /, **options: Unpack[NodeOptions]) -> str: ...
    @overload
    def __call__(
        self, question: str | Expression, schema: type[S], /, **options: Unpack[NodeOptions]
    ) -> S: ...
    @overload
    def __call__(
        self, question: str | Expression, schema: object, /, **options: Unpack[NodeOptions]
    ) -> Any: ...


class ValueSignature(Protocol):
    """`flow.value`: the value; the parts of a mapping have any type."""

    @overload
    def __call__(self, value: Mapping[str, Any], /, **options: Unpack[NodeOptions]) -> Any: ...
    @overload
    def __call__(self, value: T, /, **options: Unpack[NodeOptions]) -> T: ...


class InputSignature(Protocol):
    """`flow.input`: a value of its type; any value for the name of a type or a JSON Schema."""

    @overload
    def __call__(
        self, name: str, type: type[S], /, *, default: S = ..., description: str | None = None
    ) -> S: ...
    @overload
    def __call__(
        self,
        name: str,
        type: str | Mapping[str, Any] | list[Any] | None = None,
        /,
        *,
        default: object = ...,
        description: str | None = None,
    ) -> Any: ...
    @overload
    def __call__(
        self, name: str, type: object, /, *, default: object = ..., description: str | None = None
    ) -> Any: ...
