"""Handles: values that will exist in a run, to be passed around while the workflow is written.

    hit.text, hits[0]            fields and items
    f"About {topic}: {hits}"     in texts, they stand for the value
    score > 3, (a & ~b)          expressions, for `when`, `until`, `valid` and `branch`

Knows only the text of an expression. A handle has no value, and says so when it is asked for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from weft.core.ids import is_name

_USE = "it has a value only in a run"


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

    def _with(self, operator: str, other: object, *, turned: bool = False) -> Expression:
        left, right = _operand(self), _operand(other)
        return Expression(
            f"{right} {operator} {left}" if turned else f"{left} {operator} {right}", self._owner
        )

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self._with("==", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self._with("!=", other)

    __hash__ = object.__hash__

    def __lt__(self, other: object) -> Expression:
        return self._with("<", other)

    def __le__(self, other: object) -> Expression:
        return self._with("<=", other)

    def __gt__(self, other: object) -> Expression:
        return self._with(">", other)

    def __ge__(self, other: object) -> Expression:
        return self._with(">=", other)

    def __and__(self, other: object) -> Expression:
        return self._with("and", other)

    def __rand__(self, other: object) -> Expression:
        return self._with("and", other, turned=True)

    def __or__(self, other: object) -> Expression:
        return self._with("or", other)

    def __ror__(self, other: object) -> Expression:
        return self._with("or", other, turned=True)

    def __invert__(self) -> Expression:
        return Expression(f"not {_operand(self)}", self._owner)

    def __add__(self, other: object) -> Expression:
        return self._with("+", other)

    def __radd__(self, other: object) -> Expression:
        return self._with("+", other, turned=True)

    def __sub__(self, other: object) -> Expression:
        return self._with("-", other)

    def __rsub__(self, other: object) -> Expression:
        return self._with("-", other, turned=True)

    def __mul__(self, other: object) -> Expression:
        return self._with("*", other)

    def __rmul__(self, other: object) -> Expression:
        return self._with("*", other, turned=True)

    def __truediv__(self, other: object) -> Expression:
        return self._with("/", other)

    def __rtruediv__(self, other: object) -> Expression:
        return self._with("/", other, turned=True)

    def __mod__(self, other: object) -> Expression:
        return self._with("%", other)

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be tested here: {_USE}; use `when=` or `flow.branch`")

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{self!r} cannot be iterated here: {_USE}; use `flow.map`")

    def __len__(self) -> NoReturn:
        length = f'"{{{{ {self._source} | length }}}}"'
        raise TypeError(f"{self!r} has no length here: {_USE}; write {length}")

    def __contains__(self, _: object) -> NoReturn:
        raise TypeError(f"{self!r} cannot be searched here: {_USE}; write it in a template")


class Handle(Expression):
    """What a method of `Flow` returns: stands for a value, or for a part of one."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Handle:
        if name.startswith("_"):
            raise AttributeError(name)
        return Handle(f"{self._source}.{name}", self._owner)

    def __getitem__(self, key: str | int) -> Handle:
        if isinstance(key, str) and is_name(key):
            return Handle(f"{self._source}.{key}", self._owner)
        if isinstance(key, (str, int)):
            return Handle(f"{self._source}[{key!r}]", self._owner)
        raise TypeError(f"{self!r} takes a name or a number, not {key!r}")


def source_of(expression: Expression) -> str:
    """The text of an expression, without braces."""
    return expression._source  # noqa: SLF001 - handles offer no names of their own


def owner_of(expression: Expression) -> object:
    """The flow that an expression belongs to."""
    return expression._owner  # noqa: SLF001 - handles offer no names of their own


def _operand(value: object) -> str:
    if isinstance(value, Expression):
        source = source_of(value)
        return source if isinstance(value, Handle) else f"({source})"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float, str)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_operand(item) for item in value)}]"
    raise TypeError(f"an expression cannot hold {type(value).__name__}: {value!r}")
