"""A flow whose next nodes have settings, so that type checkers see the arguments on their own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

_TAKE_ARGUMENTS: Final = frozenset(("tool", "call", "reduce", "workflow"))
_NODES: Final = (
    *("tool", "call", "model", "workflow", "map", "reduce"),
    *("join", "branch", "loop", "ask", "value"),
)


class NodesWithSettings:
    """The methods of `flow`, a builder, that make nodes, with `settings` among their keywords."""

    def __init__(self, flow: object, settings: Mapping[str, Any]) -> None:
        self._flow = flow
        self._settings = dict(settings)

    def __getattr__(self, method: str) -> Any:
        if method not in _NODES:
            raise AttributeError(
                f"flow.options(...) makes nodes and has no `{method}`; it has {', '.join(_NODES)}"
            )
        make = partial(getattr(self._flow, method), **self._settings)
        return partial(_with_arguments, make) if method in _TAKE_ARGUMENTS else make


def _with_arguments(make: Any, /, *values: object, **named: Any) -> Any:
    """Call `make`, where all of `named` are arguments of the function, never settings."""
    own = {key: named.pop(key) for key in ("max_depth", "on") if key in named}
    given = named.pop("args", None)
    return make(*values, args={**named, **(given or {})}, **own)
