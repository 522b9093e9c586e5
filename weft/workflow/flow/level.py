"""The nodes of one level while they are being written down in Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from weft.core.errors import BuildError, DuplicateName
from weft.workflow.document.nodes import Block, Body
from weft.workflow.document.part import free_name
from weft.workflow.document.step import Step
from weft.workflow.flow.handle import Expression


class Level:
    """Nodes by name. `bound` are names that exist in it beside the nodes."""

    def __init__(self, outer: Level | None = None, bound: Iterable[str] = ()) -> None:
        self.outer = outer
        self.bound = set(bound)
        self.nodes: dict[str, Step] = {}
        self._numbers: dict[str, int] = {}

    def __contains__(self, name: object) -> bool:
        here = name in self.nodes or name in self.bound
        return here or (self.outer is not None and name in self.outer)

    def claim(self, asked: str | None, otherwise: str) -> str:
        """A name for a new node: as asked, or like `otherwise`. Raises: `DuplicateName`."""
        if asked is None:
            name = free_name(otherwise, self, self.number(otherwise))
            if name != otherwise:
                self._numbers[otherwise] = int(name.rpartition("_")[2])
            return name
        if asked in self:
            raise DuplicateName(f"`{asked}` is taken", hint="give another `name=`")
        return asked

    def number(self, wanted: str) -> int:
        """Up to which number names like this one are taken: no node ever leaves its level."""
        known = self._numbers.get(wanted)
        if known is None:
            return 1 if self.outer is None else self.outer.number(wanted)
        return known

    def body(self, result: object, to_value: Callable[[object], Any]) -> Body:
        """What was written here, as the body of a node; `result` is what it comes to."""
        value = to_value(result)
        if not self.nodes:
            from weft.workflow.document.leaves import ValueNode

            return ValueNode(value=value)
        if len(self.nodes) == 1 and isinstance(result, Expression):
            ((name, step),) = self.nodes.items()
            if value == f"{{{{ {name} }}}}":
                return step  # type: ignore[return-value]
        return Block.model_validate({"nodes": self.nodes, "result": value})


def parameters(function: Callable[..., Any], least: int, most: int, what: str) -> list[str]:
    """The names of the parameters of a body. Raises: `BuildError` when it takes another number."""
    try:
        found = [
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind
            in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            and parameter.default is inspect.Parameter.empty
        ]
    except (TypeError, ValueError) as error:
        raise BuildError(f"{what} must be a function, not {function!r}") from error
    if not least <= len(found) <= most:
        wanted = f"{least} to {most}" if least != most else str(least)
        raise BuildError(f"{what} takes {wanted} parameters, not {len(found)}")
    return found
