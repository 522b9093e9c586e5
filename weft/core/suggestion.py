"""Hints for a name that does not exist: the closest name, and all that exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final, TypeVar

from weft.core.errors import WeftError

_MOST: Final = 40
_Error = TypeVar("_Error", bound=WeftError)


def closest(name: object, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The name most like `name`, or None where none is (`difflib`'s ratio below `cutoff`)."""
    close = get_close_matches(str(name), list(names), n=1, cutoff=cutoff)
    return close[0] if close else None


def suggestion(
    name: object, names: Iterable[str], *, quote: str = "'", most: int | None = _MOST
) -> str:
    """`did you mean 'b'? there are: a, b`, in the order of `names`, at most `most` of them."""
    options = list(names)
    if not options:
        return "there are none"
    shown = options[:most]
    listed = f"there are: {', '.join(shown)}{', ...' if len(shown) < len(options) else ''}"
    close = closest(name, options)
    return listed if close is None else f"did you mean {quote}{close}{quote}? {listed}"


def unknown(error: type[_Error], what: str, name: object, names: Iterable[str]) -> _Error:
    """The `error` that there is no `what` called `name`; its hint lists all `names`."""
    return error(f"there is no {what} {name!r}", hint=suggestion(name, names, most=None))
