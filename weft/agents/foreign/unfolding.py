"""How much a schema asks of one value by referring to itself, and whether that ever ends.

Knows schemas that `weft.agents.foreign.schema` has copied; what is inside a value is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_ON_THE_SAME_VALUE: Final = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else"))


class Endless(ValueError):
    """A part of the schema refers to itself without going into the value."""


class Unfolding:
    """The parts of `root` with everything that they say of the same value, references followed."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._sizes: dict[int, int] = {}
        self._open: set[int] = set()

    def size(self, part: object) -> int:
        """How many parts `part` unfolds to. Raises: `Endless`."""
        if not isinstance(part, Mapping):
            return 1
        key = id(part)
        if key in self._open:
            raise Endless("a part of it refers to itself without end")
        if key not in self._sizes:
            self._open.add(key)
            self._sizes[key] = 1 + sum(self.size(inner) for inner in self._same_value(part))
            self._open.discard(key)
        return self._sizes[key]

    def _same_value(self, part: Mapping[str, Any]) -> Iterator[object]:
        for keyword, value in part.items():
            if keyword == "$ref" and isinstance(value, str):
                yield target(value, self._root)
            elif keyword in _ON_THE_SAME_VALUE:
                yield from value if isinstance(value, list) else [value]
            elif keyword == "dependentSchemas" and isinstance(value, Mapping):
                yield from value.values()


def target(reference: str, root: object) -> object:
    """The part of `root` that a reference leads to; None when it leads nowhere."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    for step in reference.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(root, list):
            root = root[int(name)] if name.isdecimal() and int(name) < len(root) else None
        else:
            root = root.get(name) if isinstance(root, Mapping) else None
        if root is None:
            return None
    return root if isinstance(root, (Mapping, bool)) else None
