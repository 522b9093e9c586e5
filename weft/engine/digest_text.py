"""The texts that digests are made of: equal for equal content, and never changed.

What is stored rests on them: digests of nodes, calls and results. Two forms, since a cache must not
confuse a number with its text, and a recorded call should survive that a list becomes a tuple. Of a
list that grew only what is new is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from weft.core.list_prefixes import Items, ListPrefixCache

_second: Final = itemgetter(1)
DigestTexts = ListPrefixCache[str]
"""For each list that was written the texts of its items, each with what stands before it."""


@dataclass(frozen=True, slots=True)
class DigestFormat:
    """How values are written. `other`: writes what is no text, integer, list or plain mapping.

    `tagged`: a container says what it is, and keys are sorted as they are written.
    """

    quoted: Callable[[str], str]
    tagged: bool
    other: Callable[[Any, DigestTexts | None], str]

    def text(self, value: Any, texts: DigestTexts | None = None) -> str:
        """`value` as JSON text; `texts` knows the lists that were written before."""
        kind = type(value)
        if kind is str:
            return self.quoted(value)
        if kind is int:
            return int.__repr__(value)
        if kind is list or kind is tuple:
            items = self._items(value, texts)
            return f'["list"{items}]' if self.tagged else f"[{items[2:]}]"
        if kind is dict and (text := self._mapping(value, texts)) is not None:
            return text
        return self.other(value, texts)

    def _items(self, items: Items, texts: DigestTexts | None) -> str:
        prefix = None if texts is None else texts.find(items)
        if texts is None or prefix is None:
            return "".join([f", {self.text(item, texts)}" for item in items])
        new = items[prefix.length :]
        whole = "".join([prefix.state or "", *[f", {self.text(item)}" for item in new]])
        texts.keep(prefix, items, whole, len(whole))
        return whole

    def _mapping(self, value: Mapping[Any, Any], texts: DigestTexts | None) -> str | None:
        """The text of a mapping whose keys are plain texts; None of another."""
        quoted, tagged = self.quoted, self.tagged
        pairs: list[tuple[str, str]] = []
        for key, item in value.items():
            if type(key) is not str:
                return None
            kind = type(item)
            if kind is int:
                text = int.__repr__(item)
            else:
                text = quoted(item) if kind is str else self.text(item, texts)
            name = quoted(key)
            pair = (name, f", [{quoted(name)}, {text}]") if tagged else (key, f"{name}: {text}")
            pairs.append(pair)
        pairs.sort()
        written = map(_second, pairs)
        return f'["map"{"".join(written)}]' if tagged else f"{{{', '.join(written)}}}"
