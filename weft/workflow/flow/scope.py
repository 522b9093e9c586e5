"""Scopes of nodes while a flow is written in Python, and automatic node names."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise
from types import CodeType
from typing import Any

from weft.core.errors import BuildError, DuplicateName
from weft.core.ids import is_name
from weft.workflow.document.spec.fields import RESERVED, free_name
from weft.workflow.document.spec.nodes import BaseNode, Block, Body
from weft.workflow.flow.handle import Expression


class FlowScope:
    """Nodes by name. `bound`: names other than nodes that exist in the scope.

    `inner`: the names in bodies of its nodes, which a later node of the scope must not take.
    `exits`: the values with which breaks end the loop.
    """

    def __init__(self, outer: FlowScope | None = None, bound: Iterable[str] = ()) -> None:
        self.outer = outer
        self.bound = set(bound)
        self.nodes: dict[str, BaseNode] = {}
        self.inner: set[str] = set()
        self.exits: list[Any] = []
        self._numbers: dict[str, int] = {}

    def __contains__(self, name: object) -> bool:
        here = name in self.nodes or name in self.bound
        return here or (self.outer is not None and name in self.outer)

    def claim(self, wanted: str | None, otherwise: str) -> str:
        """A name for a new node: `wanted`, or like `otherwise`. Raises: `DuplicateName`."""
        if wanted is None:
            name = free_name(otherwise, _Taken(self), self.number(otherwise))
            if name != otherwise:
                self._numbers[otherwise] = int(name.rpartition("_")[2])
            return name
        if wanted in self:
            raise DuplicateName(f"`{wanted}` is taken", hint="give another `name=`")
        return wanted

    def number(self, wanted: str) -> int:
        """The largest number in use for names like `wanted`; nodes are never removed."""
        number = self._numbers.get(wanted)
        if number is None:
            return 1 if self.outer is None else self.outer.number(wanted)
        return number

    def body(self, result: object, to_value: Callable[[object], Any]) -> Body:
        """The nodes of this scope as a body; `result` is the body's value."""
        value = to_value(result)
        if not self.nodes:
            from weft.workflow.document.spec.nodes import ValueNode

            return ValueNode(value=value)
        if len(self.nodes) == 1 and isinstance(result, Expression):
            ((name, step),) = self.nodes.items()
            if value == f"{{{{ {name} }}}}":
                return step  # type: ignore[return-value]
        return Block.model_validate({"nodes": self.nodes, "result": value})


class _Taken:
    """The names that a new node of a scope cannot have."""

    def __init__(self, scope: FlowScope) -> None:
        self._scope = scope

    def __contains__(self, name: object) -> bool:
        return name in self._scope.inner or name in self._scope


def parameters(function: Callable[..., Any], least: int, most: int, what: str) -> list[str]:
    """The names of a body's parameters. Raises: `BuildError` unless `least` to `most` of them."""
    try:
        names = [
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind
            in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            and parameter.default is inspect.Parameter.empty
        ]
    except (TypeError, ValueError) as error:
        raise BuildError(
            f"{what} must be a function, not {function!r}", hint="write def or lambda"
        ) from error
    if not least <= len(names) <= most:
        wanted = f"{least} to {most}" if least != most else str(least)
        raise BuildError(f"{what} takes {wanted} parameters, not {len(names)}")
    return names


_PACKAGE = "weft."


def assigned_name() -> str | None:
    """The variable to which the innermost call from outside this package is assigned."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return None
    name = _stores(frame.f_code).get(frame.f_lasti)
    usable = name is not None and is_name(name) and name not in RESERVED
    return name if usable and not str(name).startswith("_") else None


@lru_cache(maxsize=1024)
def _stores(code: CodeType) -> dict[int, str]:
    """For each call whose result is assigned to a variable: its offsets, and the variable."""
    stores: dict[int, str] = {}
    for call, store in pairwise(dis.get_instructions(code)):
        if call.opname.startswith("CALL") and store.opname.startswith("STORE_"):
            name = store.argval[0] if isinstance(store.argval, tuple) else store.argval
            if isinstance(name, str) and store.opname not in ("STORE_ATTR", "STORE_SUBSCR"):
                # While a call runs, a frame points at it or at the inline caches after it.
                stores.update(dict.fromkeys(range(call.offset, store.offset), name))
    return stores
