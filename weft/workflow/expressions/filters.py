"""The filters that templates have: a chosen part of Jinja's, and some of our own. All bounded."""

from __future__ import annotations

import json
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    ValuesView,
)
from typing import Any

from jinja2 import filters as jinja
from jinja2.runtime import Undefined
from markupsafe import Markup

from weft.core.events import jsonable
from weft.workflow.expressions.bounds import check_length, counted

_JINJA = (
    "abs",
    "capitalize",
    "count",
    "d",
    "default",
    "dictsort",
    "first",
    "float",
    "groupby",
    "int",
    "items",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "reverse",
    "select",
    "selectattr",
    "sort",
    "string",
    "sum",
    "title",
    "trim",
    "truncate",
    "unique",
    "upper",
    "urlencode",
    "wordcount",
    "wordwrap",
)
COUNTED = "__counted__"
"""The filter that `weft.workflow.expressions.references` puts around what a loop goes through."""


def text_of(value: Any) -> Any:
    """How a value appears in a text: texts as they are, everything else as JSON."""
    if isinstance(value, Undefined):
        return value
    return value if isinstance(value, str) else to_json(value)


def to_json(value: Any, indent: int | None = None) -> str:
    """`value` as JSON, in one line or indented by up to 8 blanks; other objects as a JSON text."""
    if indent is not None and not 0 <= indent <= 8:
        raise ValueError("tojson indents by 0 to 8")
    return json.dumps(plain(value), ensure_ascii=False, indent=indent, default=jsonable)


def from_json(text: str) -> Any:
    """The value that a JSON text holds."""
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
    """Every line but the first (or all) moved right by up to 80 blanks."""
    if not 0 <= width <= 80:
        raise ValueError("indent moves by 0 to 80 blanks")
    lines = text.split("\n")
    check_length(len(text) + width * len(lines))
    moved = [" " * width + line if line else line for line in lines]
    return "\n".join(moved if first else [lines[0], *moved[1:]])


def rounded(number: float, digits: int = 0) -> float:
    """`number` with `digits` (at most 15) behind the point."""
    if not 0 <= digits <= 15:
        raise ValueError("round keeps 0 to 15 digits")
    return round(number, digits)


def flatten(lists: Iterable[Iterable[Any]]) -> list[Any]:
    """The items of all lists, as one list."""
    return [item for items in lists for item in items]


def plain(value: Any) -> Any:
    """`value` with Jinja's own types replaced by lists and texts.

    Raises: `UndefinedError` for what does not exist.
    """
    match value:
        case Undefined() | Markup():
            return str(value)
        case str() | int() | float() | bool() | None:
            return value
        case Mapping():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _ if isinstance(value, range) or _is_stream(value):
            return [plain(item) for item in value]
        case _:
            return value


def _is_stream(value: Any) -> bool:
    return isinstance(value, (Iterator, KeysView, ValuesView, ItemsView))


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
