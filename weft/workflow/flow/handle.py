"""Handles: placeholders, while a workflow is written, for values that exist only in a run.

    hit.text, hits[0]            fields and items
    f"About {topic}: {hits}"     in a text, they stand for the value
    score > 3, (a & ~b)          expressions, for `when`, `until`, `valid` and `branch`

A handle contains only the text of an expression. Using it as a value raises `TypeError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, NoReturn, Optional, TypeVar

from weft.core.errors import BuildError
from weft.core.ids import is_name
from weft.workflow.document.python_types import fits, has_instances, item_type, list_of, part_of

_USE = "it has a value only in a run"


def _operator(sign: str, *, swapped: bool = False) -> Callable[[Expression, object], Expression]:
    """The method for an operator; `swapped`: the other operand is on the left."""

    def method(self: Expression, other: object) -> Expression:
        left, right = (other, self) if swapped else (self, other)
        return Expression(f"{_operand(left)} {sign} {_operand(right)}", owner_of(self))

    return method


class Expression:
    """An expression over handles. In a text it becomes `{{ the expression }}`."""

    __slots__ = ("_owner", "_source")

    def __init__(self, source: str, owner: object) -> None:
        self._source = source
        self._owner = owner

    def __str__(self) -> str:
        return f"{{{{ {self._source} }}}}"

    def __repr__(self) -> str:
        return f"<{self._source}>"

    def __format__(self, spec: str) -> str:
        if spec:
            raise TypeError(f"{self!r} cannot be formatted with {spec!r}: {_USE}")
        return str(self)

    __eq__ = _operator("==")  # type: ignore[assignment]
    __ne__ = _operator("!=")  # type: ignore[assignment]
    __hash__ = object.__hash__
    __lt__, __le__ = _operator("<"), _operator("<=")
    __gt__, __ge__ = _operator(">"), _operator(">=")
    __and__, __rand__ = _operator("and"), _operator("and", swapped=True)
    __or__, __ror__ = _operator("or"), _operator("or", swapped=True)
    __add__, __radd__ = _operator("+"), _operator("+", swapped=True)
    __sub__, __rsub__ = _operator("-"), _operator("-", swapped=True)
    __mul__, __rmul__ = _operator("*"), _operator("*", swapped=True)
    __truediv__, __rtruediv__ = _operator("/"), _operator("/", swapped=True)
    __mod__ = _operator("%")

    def __invert__(self) -> Expression:
        return Expression(f"not {_operand(self)}", self._owner)

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be tested here: {_USE}; use `when=` or `flow.branch`")

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{self!r} cannot be iterated here: {_USE}; use `flow.map`")

    def __len__(self) -> NoReturn:
        length = f'"{{{{ {self._source} | length }}}}"'
        raise TypeError(f"{self!r} has no length here: {_USE}; write {length}")

    def __int__(self) -> int:
        raise self._no_number("int")

    def __float__(self) -> float:
        raise self._no_number("float")

    def __index__(self) -> int:
        raise self._no_number("int")

    def _no_number(self, kind: str) -> TypeError:
        how = f'flow.call({kind}, {self._source}), or "{{{{ {self._source} | {kind} }}}}"'
        return TypeError(f"{self!r} is no number here: {_USE}; write {how}")

    def __contains__(self, _: object) -> NoReturn:
        raise TypeError(f"{self!r} cannot be searched here: {_USE}; write it in a template")


class NodeHandle(Expression):
    """A placeholder for a value, or for a part of one, returned by the methods of `Flow`.

    `kind` is the Python type of the value, None where it is unknown.
    """

    __slots__ = ("_kind",)

    def __init__(self, source: str, owner: object, kind: Any = None) -> None:
        super().__init__(source, owner)
        self._kind = kind

    def __getattr__(self, name: str) -> NodeHandle:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._part(name)

    def __getitem__(self, key: str | int | slice | Expression) -> NodeHandle:
        if isinstance(key, str):
            return self._part(key)
        kind = None if self._kind is None else item_type(self._kind)
        if isinstance(key, slice):
            return NodeHandle(f"{self._source}[{self._key(key)}]", self._owner, list_of(kind))
        if isinstance(key, Expression):
            return NodeHandle(f"{self._source}[{self._key(key)}]", self._owner, kind)
        if isinstance(key, int):
            return NodeHandle(f"{self._source}[{key!r}]", self._owner, kind)
        raise TypeError(f"{self!r} takes a name, a number or a handle, not {key!r}")

    def __call__(self, *_: object, **__: object) -> NoReturn:
        owner, name = self._source.rpartition(".")[::2]
        how = f"flow.call(function, {owner or self._source})"
        how += f', or a filter: "{{{{ {owner} | {name} }}}}"' if owner else ""
        raise TypeError(f"{self!r} cannot be called here: {_USE}; write {how}")

    def _key(self, key: slice | Expression | int | None) -> str:
        """An index that is known only in a run, or a slice, as a template writes it."""
        if isinstance(key, slice):
            ends = (key.start, key.stop) if key.step is None else (key.start, key.stop, key.step)
            return ":".join("" if end is None else self._key(end) for end in ends)
        if isinstance(key, Expression) and owner_of(key) is not self._owner:
            raise BuildError(
                f"{key!r} belongs to another flow",
                hint="use the handles of one flow; run the other one with `flow.workflow(...)`",
            )
        if not isinstance(key, (Expression, int)):
            raise TypeError(f"{self!r} takes whole numbers and handles in a slice, not {key!r}")
        return _operand(key)

    def _part(self, name: str) -> NodeHandle:
        key, kind = (name, None) if self._kind is None else part_of(self._kind, name)
        source = f"{self._source}.{key}" if is_name(key) else f"{self._source}[{key!r}]"
        return NodeHandle(source, self._owner, kind)


T = TypeVar("T")
Handle = Annotated[T, NodeHandle]
"""A handle of a value of type `T`. To a type checker it is the value that it stands for, so that
fields, items, and arguments of functions are checked; in the program it is a `NodeHandle`."""


def kind_of(value: object) -> Any:
    """The Python type of a handle, an instance, or a list of them of one type; None: unknown."""
    if isinstance(value, Expression):
        return value._kind if isinstance(value, NodeHandle) else None  # noqa: SLF001
    if isinstance(value, (list, tuple)) and value:
        return list_of(shared_kind(kind_of(value[0]), value[1:]))
    return type(value) if has_instances(type(value)) else None


def shared_kind(kind: Any, others: Iterable[object]) -> Any:
    """The type of a value that is of `kind`, or one of `others`: handles and plain values.

    Where one of them is None it is optional. None: unknown, as it is for values of several types.
    """
    optional = False
    for other in others:
        if isinstance(other, Expression):
            fit = kind_of(other) == kind
        else:
            optional |= other is None
            fit = kind is None or other is None or fits(kind, other)
        if not fit:
            return None
    return Optional[kind] if optional and kind is not None else kind  # noqa: UP045 - any type


class InputHandles:
    """The handles of a flow's inputs, by the names of the fields of its type of inputs."""

    def __init__(self, kind: Any, owner: object) -> None:
        self._kind = kind
        self._owner = owner

    def __getattr__(self, name: str) -> NodeHandle:
        if name.startswith("__"):
            raise AttributeError(name)
        return NodeHandle(*self._part(name))

    __getitem__ = __getattr__

    def _part(self, name: str) -> tuple[str, object, Any]:
        key, kind = part_of(self._kind, name)
        return key, self._owner, kind


def kinds_of(value: object) -> Any:
    """As `kind_of`, for each part of a mapping or a list too."""
    if isinstance(value, Mapping):
        return {key: kinds_of(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [kinds_of(item) for item in value]
    return kind_of(value)


def source_of(expression: Expression) -> str:
    """The text of an expression, without braces."""
    return expression._source  # noqa: SLF001 - every other attribute is a handle


def owner_of(expression: Expression) -> object:
    """The flow that an expression belongs to."""
    return expression._owner  # noqa: SLF001 - every other attribute is a handle


def _operand(value: object) -> str:
    if isinstance(value, Expression):
        source = source_of(value)
        return source if isinstance(value, NodeHandle) else f"({source})"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float, str)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_operand(item) for item in value)}]"
    raise TypeError(f"an expression cannot hold {type(value).__name__}: {value!r}")
