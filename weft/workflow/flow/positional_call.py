"""Functions that take arguments by position, such as `len`, as nodes call them: by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any

from weft.core.ids import is_name


class PositionalCall:
    """Calls `function` with its first arguments by position; `names` are theirs, in order."""

    def __init__(self, function: Callable[..., Any], names: Sequence[str]) -> None:
        self._names = tuple(names)
        self.__wrapped__ = function  # its code is that of this function
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        own = [Parameter(name, Parameter.KEYWORD_ONLY) for name in names]
        self.__signature__ = Signature([*own, Parameter("named", Parameter.VAR_KEYWORD)])

    def __call__(self, /, **values: Any) -> Any:
        positional = [values.pop(name) for name in self._names]
        return self.__wrapped__(*positional, **values)


def with_names(
    function: Callable[..., Any], arguments: Sequence[object]
) -> tuple[Callable[..., Any], Mapping[str, object]]:
    """`function` in a form that takes `arguments` by name, and they by these names.

    A function that takes all of them by name stays as it is, and so do they.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())[: len(arguments)]
    except (TypeError, ValueError):  # some functions written in C have none
        parameters = []
    by_name = [each for each in parameters if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
    if len(by_name) == len(arguments):
        return function, {}
    only = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    known = [each.name for each in parameters if each.kind in only and is_name(each.name)]
    rest = range(len(known) + 1, len(arguments) + 1)
    names = [*known, *(f"argument_{number}" for number in rest)]
    return PositionalCall(function, names), dict(zip(names, arguments, strict=True))
