"""Arrays as parts of a skeleton: what there must be is laid out, each further item is chosen."""

from __future__ import annotations

from typing import Final

from weft.decoding.diffusion.structure.compiling import Compiling
from weft.decoding.diffusion.structure.keywords import Schema
from weft.decoding.diffusion.structure.parts import Parts, Text, joined
from weft.decoding.diffusion.structure.refused import NotASkeleton
from weft.decoding.diffusion.structure.repeated import Repeated

_MOST_LAID_OUT: Final = 1000


class Arrays:
    """One schema of an array."""

    def __init__(self, compiling: Compiling, schema: Schema) -> None:
        self._compiling = compiling
        self._first = list(schema.get("prefixItems", ()))
        self._rest = schema.get("items", True)
        if isinstance(self._rest, list | tuple):
            raise NotASkeleton("'items' as a list, which is 'prefixItems' now,")
        self._least = schema.get("minItems", 0)
        self._most: int | None = schema.get("maxItems")
        if self._rest is False:
            longest = len(self._first)
            self._most = longest if self._most is None else min(self._most, longest)
        if schema.get("uniqueItems") and (self._most is None or self._most > 1):
            raise NotASkeleton("'uniqueItems' cannot be laid out")
        if self._least > _MOST_LAID_OUT:
            raise NotASkeleton(f"an array of at least {self._least} items")

    def parts(self) -> Parts:
        """Raises: `NotASkeleton`."""
        key = self._compiling.key([self._first, self._rest, self._most])
        items = Repeated(self._compiling, ("items", key), self._item, self._most, len(self._first))
        return joined((Text("["), *items.parts(self._least), Text("]")))

    def _item(self, number: int) -> Parts:
        known = number < len(self._first)
        return self._compiling.value(self._first[number] if known else self._rest)
