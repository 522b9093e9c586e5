"""The Jinja environment of all templates: immutable, sandboxed, with bounds on what it computes.

Protects against texts that reach into Python, or grow without end. A template can still be slow
in proportion to the data it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import StrictUndefined, nodes
from jinja2.exceptions import SecurityError
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from weft.workflow.expressions.bounds import multiply, power, remainder, whole_range
from weft.workflow.expressions.filters import FILTERS, text_of

_METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset(
        (
            *("capitalize", "lower", "title", "upper", "strip", "lstrip", "rstrip"),
            *("removeprefix", "removesuffix", "split", "splitlines"),
            *("count", "find", "startswith", "endswith", "isdigit"),
        )
    ),
    dict: frozenset(("get", "items", "keys", "values")),
    list: frozenset(("count", "index")),
}
METHODS = frozenset().union(*_METHODS.values())
"""The names of all methods that templates may call."""
_OPERATORS = {"*": multiply, "**": power, "%": remainder}


class _PowerParser(Parser):
    """Reads `**` as Python does: from the right. Jinja takes `2**3**2` for `(2**3)**2`."""

    def parse_pow(self) -> nodes.Expr:
        first = self.stream.current
        base = self.parse_unary()
        if self.stream.current.type != "pow":
            return base
        if first.type in ("add", "sub"):
            said = "with a sign before `**`, write parentheses: (-x)**2 or -(x**2)"
            self.fail(said, first.lineno)
        next(self.stream)
        return nodes.Pow(base, self._exponent(), lineno=first.lineno)

    def _exponent(self) -> nodes.Expr:
        """A sign belongs to the exponent, and so does what follows: `2**-1**2` is `2**-(1**2)`."""
        token = self.stream.current
        if token.type == "sub":
            next(self.stream)
            return nodes.Neg(self._exponent(), lineno=token.lineno)
        return self.parse_pow()


class Nothing(StrictUndefined):
    """What a name or a field that does not exist evaluates to; using it is an error."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        owner: Any = self._undefined_obj
        name: Any = self._undefined_name
        if isinstance(owner, Mapping):
            there = ", ".join(map(str, list(owner)[:20]))
            return f"there is no {name!r}; there is: {there or 'nothing'}"
        if isinstance(owner, (list, tuple)) and isinstance(name, int):
            return f"there is no item {name}; there are {len(owner)}"
        return str(super()._undefined_message)


class Sandbox(ImmutableSandboxedEnvironment):
    """On mappings, `doc.title` and `doc["title"]` read the key, even if it is called `items`."""

    intercepted_binops = frozenset(_OPERATORS)

    def __init__(self) -> None:
        super().__init__(
            undefined=Nothing,
            autoescape=False,
            keep_trailing_newline=True,
            optimized=False,
            cache_size=0,
            finalize=text_of,
        )
        self.filters = dict(FILTERS)
        self.globals = {"range": whole_range}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        return _PowerParser(self, source, name, filename).parse()

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, Mapping):
            return self._entry(obj, attribute, methods=True)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Mapping):
            return self._entry(obj, argument, methods=False)
        return super().getitem(obj, argument)

    def _entry(self, obj: Mapping[Any, Any], key: Any, *, methods: bool) -> Any:
        try:
            return obj[key]
        except (KeyError, TypeError):
            if methods and key in _METHODS[dict]:
                return getattr(obj, key)
            return self.undefined(obj=obj, name=key)

    def is_safe_callable(self, obj: Any) -> bool:
        if obj is whole_range:
            return True
        owner = getattr(obj, "__self__", None)
        if isinstance(owner, LoopContext):
            return True
        kind = next((kind for kind in _METHODS if isinstance(owner, kind)), None)
        return kind is not None and getattr(obj, "__name__", "") in _METHODS[kind]

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        if isinstance(obj, Undefined):
            str(obj)
        if not self.is_safe_callable(obj):
            name = getattr(obj, "__name__", type(obj).__name__)
            raise SecurityError(f"`{name}` cannot be called in a template")
        return context.call(obj, *args, **kwargs)

    def call_binop(
        self,
        context: Context,  # noqa: ARG002 - Jinja's signature
        operator: str,
        left: Any,
        right: Any,
    ) -> Any:
        if isinstance(left, Undefined):
            str(left)
        return _OPERATORS[operator](left, right)


SANDBOX = Sandbox()
