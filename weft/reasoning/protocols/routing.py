"""Which peers' summaries a path reads (LeaP): the most alike, the least alike, or some of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final, Literal

Route = Literal["clustered", "dispersed", "hybrid"]
ROUTES: Final = ("clustered", "dispersed", "hybrid")

_COMPARED_CHARS: Final = 2000


def routed(key: str, summaries: Mapping[str, str], route: Route, most: int) -> tuple[str, ...]:
    """The keys of at most `most` of the other `summaries` for the path `key`, in declared order.

    clustered: those most like its own; dispersed: those least like it; hybrid: both in turn, the
    most alike first. At equal likeness the earlier one.
    """
    others = [other for other in summaries if other != key]
    own = summaries.get(key, "")[:_COMPARED_CHARS]
    likeness = {other: _alike(own, summaries[other][:_COMPARED_CHARS]) for other in others}
    near = sorted(others, key=lambda other: -likeness[other])
    chosen = set(_in_turn(near, route)[:most])
    return tuple(other for other in others if other in chosen)


def _in_turn(near: Sequence[str], route: Route) -> list[str]:
    far = list(reversed(near))
    if route == "hybrid":
        both = (key for pair in zip(near, far, strict=True) for key in pair)
        return list(dict.fromkeys(both))
    return list(near) if route == "clustered" else far


def _alike(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
