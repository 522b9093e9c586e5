"""The Jinja environment of all templates: immutable, sandboxed and bounded, with its own filters.

It prevents access to Python and unbounded growth. A template's run time is still proportional to
its data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from contextvars import ContextVar
from typing import Any

from jinja2 import StrictUndefined, nodes
from jinja2 import filters as jinja
from jinja2.exceptions import SecurityError
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from weft.core.content import Media
from weft.core.events import jsonable

MAX_TEXT = 4_000_000
"""The longest text, in characters."""
MAX_STEPS = 200_000
"""Iterations of all `{% for %}` loops of one rendering."""
MAX_RANGE = 10_000
_MAX_BITS = 4096

steps_left: ContextVar[list[int]] = ContextVar("steps_left")
"""One mutable count for each rendering; set by the renderer."""


class OutOfBounds(ValueError):
    """A template computes more than its bounds allow."""


def counted(items: Iterable[Any]) -> Iterator[Any]:
    """`items`, while the rendering's loops have steps left."""
    left = steps_left.get()
    for item in items:
        left[0] -= 1
        if left[0] < 0:
            raise OutOfBounds(f"the loops make more than {MAX_STEPS:,} steps")
        yield item


def check_length(length: int) -> None:
    """Raise `OutOfBounds` when a text or list of `length` is too long."""
    if length > MAX_TEXT:
        raise OutOfBounds(f"a value grows beyond {MAX_TEXT:,} characters or items")


def multiply(left: Any, right: Any) -> Any:
    """`left * right`, unless the result is huge."""
    for text, count in ((left, right), (right, left)):
        if isinstance(text, (str, bytes, list, tuple)) and isinstance(count, int):
            check_length(len(text) * max(count, 0))
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() + right.bit_length())
    return left * right


def power(left: Any, right: Any) -> Any:
    """`left ** right`, unless the result is huge."""
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() * max(right, 0))
    return left**right


def remainder(left: Any, right: Any) -> Any:
    """`left % right` of numbers; formatting texts this way is refused."""
    if isinstance(left, (str, bytes)):
        raise OutOfBounds("`%` is for numbers here; join texts with `~`")
    return left % right


def whole_range(*arguments: int) -> range:
    """Like `range`, for at most `MAX_RANGE` numbers."""
    numbers = range(*arguments)
    if len(numbers) > MAX_RANGE:
        raise OutOfBounds(f"a range has at most {MAX_RANGE:,} numbers")
    return numbers


def _check_bits(bits: int) -> None:
    if bits > _MAX_BITS:
        raise OutOfBounds(f"a number has more than {_MAX_BITS:,} bits")


_JINJA = (
    *("abs", "capitalize", "count", "d", "default", "dictsort", "first", "float"),
    *("groupby", "int", "items", "last", "length", "list", "lower", "map", "max"),
    *("min", "reject", "rejectattr", "reverse", "select", "selectattr", "sort"),
    *("string", "sum", "title", "trim", "truncate", "unique", "upper", "urlencode"),
    *("wordcount", "wordwrap"),
)
COUNTED = "__counted__"
"""The filter that `weft.workflow.document.expressions.analysis` puts around the items of loops."""


def text_of(value: Any) -> Any:
    """A value as it appears in a text: texts as they are, all others as JSON."""
    if isinstance(value, Undefined):
        return value
    if isinstance(value, Media):
        raise TypeError(f"{value} is no text: give it in `messages`, as a part of the content")
    return value if isinstance(value, str) else to_json(value)


def to_json(value: Any, indent: int | None = None) -> str:
    """`value` as JSON, in one line or indented by up to 8 blanks; other objects as their `repr`."""
    if indent is not None and not 0 <= indent <= 8:
        raise ValueError("tojson indents by 0 to 8")
    return json.dumps(plain(value), ensure_ascii=False, indent=indent, default=jsonable)


def from_json(text: str) -> Any:
    """The value of a JSON text."""
    return json.loads(text)


def join(items: Iterable[Any], separator: str = "", attribute: str | int | None = None) -> str:
    """The items as one text; `attribute` joins that field of each."""
    values = [item if attribute is None else item[attribute] for item in items]
    texts = [str(text_of(value)) for value in values]
    check_length(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    """`text` with `old` replaced by `new`, at most `count` times."""
    check_length(len(text) + text.count(old) * len(new))
    return text.replace(old, new, count)


def indent(text: str, width: int = 4, first: bool = False) -> str:
    """The text with every line but the first (or all lines) indented by up to 80 blanks."""
    if not 0 <= width <= 80:
        raise ValueError("indent moves by 0 to 80 blanks")
    lines = text.split("\n")
    check_length(len(text) + width * len(lines))
    moved = [" " * width + line if line else line for line in lines]
    return "\n".join(moved if first else [lines[0], *moved[1:]])


def rounded(number: float, digits: int = 0) -> float:
    """`number` rounded to `digits` (at most 15) decimals."""
    if not 0 <= digits <= 15:
        raise ValueError("round keeps 0 to 15 digits")
    return round(number, digits)


def flatten(lists: Iterable[Iterable[Any]]) -> list[Any]:
    """The items of all lists, as one list."""
    return [item for items in lists for item in items]


def plain(value: Any) -> Any:
    """`value` with Jinja's own types replaced by lists and texts.

    Raises: `UndefinedError` for undefined values.
    """
    match value:
        case Undefined() | Markup():
            return str(value)
        case str() | int() | float() | bool() | None:
            return value
        case Media():
            return value
        case Mapping():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case range() | Iterator() | KeysView() | ValuesView() | ItemsView():
            return [plain(item) for item in value]
        case _:
            return value


FILTERS: Mapping[str, Callable[..., Any]] = {
    **{name: jinja.FILTERS[name] for name in _JINJA},
    "flatten": flatten,
    "fromjson": from_json,
    "indent": indent,
    "join": join,
    "replace": replace,
    "round": rounded,
    "tojson": to_json,
    COUNTED: counted,
}


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
"""All methods that templates may call."""
_OPERATORS = {"*": multiply, "**": power, "%": remainder}


class _PowerParser(Parser):
    """Parses `**` as Python does, right-associative; in Jinja `2**3**2` is `(2**3)**2`."""

    def parse_pow(self) -> nodes.Expr:
        first = self.stream.current
        base = self.parse_unary()
        if self.stream.current.type != "pow":
            return base
        if first.type in ("add", "sub"):
            message = "with a sign before `**`, write parentheses: (-x)**2 or -(x**2)"
            self.fail(message, first.lineno)
        next(self.stream)
        return nodes.Pow(base, self._exponent(), lineno=first.lineno)

    def _exponent(self) -> nodes.Expr:
        """A sign binds looser than a following power: `2**-1**2` is `2**-(1**2)`."""
        token = self.stream.current
        if token.type == "sub":
            next(self.stream)
            return nodes.Neg(self._exponent(), lineno=token.lineno)
        return self.parse_pow()


class MissingValue(StrictUndefined):
    """The value of a missing name or field; using it is an error."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        owner: Any = self._undefined_obj
        name: Any = self._undefined_name
        if isinstance(owner, Mapping):
            keys = ", ".join(map(str, list(owner)[:20]))
            return f"there is no {name!r}; there is: {keys or 'nothing'}"
        if isinstance(owner, (list, tuple)) and isinstance(name, int):
            return f"there is no item {name}; there are {len(owner)}"
        return str(super()._undefined_message)


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """On mappings, `doc.title` and `doc["title"]` read the key, even one such as `items`.

    A whole number reads the key that is its text: the keys of a JSON object are texts.
    """

    intercepted_binops = frozenset(_OPERATORS)

    def __init__(self) -> None:
        super().__init__(
            undefined=MissingValue,
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
            if type(key) is int and str(key) in obj:
                return obj[str(key)]
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


SANDBOX = TemplateSandbox()
