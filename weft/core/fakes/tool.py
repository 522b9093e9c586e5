"""Tools from plain functions, without schemas or threads; records every call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from weft.core.errors import ToolArgumentError, ToolNotFound, ToolRaised, WeftError
from weft.core.values import ToolSpec

_ANYTHING = {"type": "object"}


class FakeTools:
    """Implements `ToolRunner` over `name=function` pairs; functions may be async.

    `calls` lists every (name, arguments) in the order the calls began.
    """

    def __init__(self, **functions: Callable[..., Any]) -> None:
        self._functions = functions
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(
            ToolSpec(name, inspect.getdoc(function) or "", _ANYTHING)
            for name, function in self._functions.items()
        )

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        function = self._functions.get(name)
        if function is None:
            raise ToolNotFound(f"no tool {name!r}", hint=f"there are: {', '.join(self._functions)}")
        try:
            inspect.signature(function).bind(**arguments)
        except TypeError as error:
            raise ToolArgumentError(f"{name}: {error}") from error
        self.calls.append((name, dict(arguments)))
        try:
            result = function(**arguments)
            return await result if inspect.isawaitable(result) else result
        except WeftError:
            raise
        except Exception as error:
            raise ToolRaised(f"{name} raised {type(error).__name__}: {error}") from error
