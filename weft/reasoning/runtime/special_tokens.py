"""A protocol's tags in one model: special tokens where it has them, text otherwise."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from weft.reasoning.runtime.moves import ControlTag, Piece

# Look-alikes: single angle quotation marks, white square brackets, ornamental braces.
_HARMLESS: Final = str.maketrans("<>[]{}|", "\u2039\u203a\u27e6\u27e7\u2774\u2775\u00a6")
_JOINER: Final = "\u2060"


class SpecialTokens:
    """The special tokens of a model: `ids` maps tags to them; the rest of `tags` are plain text.

    `also` are tags only where they are special tokens. `trained`: the model was trained with the
    tags as text, so that no prompt explains them.
    """

    def __init__(
        self,
        tags: Sequence[str],
        ids: Mapping[str, int],
        also: Sequence[str] = (),
        *,
        trained: bool = False,
    ) -> None:
        self.prompted = not trained and any(tag not in ids for tag in tags)
        tags = (*tags, *(tag for tag in also if tag in ids))
        self.tags = tags
        self.ids = {tag: ids[tag] for tag in tags if tag in ids}
        self._by_id = {number: ControlTag(tag) for tag, number in self.ids.items()}
        self._any = _pattern(self.tags)
        self._plain = _pattern([tag for tag in tags if tag not in self.ids])

    def guarded(self, text: str) -> str:
        """`text` with look-alikes for the tags in it."""
        return text if self._any is None else self._any.sub(_harmless, text)

    def stretches(self, ids: Sequence[int]) -> list[tuple[int, ...] | ControlTag]:
        """`ids` split at special tokens."""
        found: list[tuple[int, ...] | ControlTag] = []
        start = 0
        for at, token in enumerate(ids):
            if token in self._by_id:
                if at > start:
                    found.append(tuple(ids[start:at]))
                found.append(self._by_id[token])
                start = at + 1
        if start < len(ids):
            found.append(tuple(ids[start:]))
        return found

    def pieces(self, text: str) -> list[Piece]:
        """`text` split at the tags that are plain text."""
        if self._plain is None:
            return [text] if text else []
        found: list[Piece] = []
        start = 0
        for match in self._plain.finditer(text):
            if match.start() > start:
                found.append(text[start : match.start()])
            found.append(ControlTag(match.group()))
            start = match.end()
        if start < len(text):
            found.append(text[start:])
        return found


def _pattern(tags: Sequence[str]) -> re.Pattern[str] | None:
    if not tags:
        return None
    return re.compile("|".join(map(re.escape, sorted(tags, key=len, reverse=True))))


def _harmless(match: re.Match[str]) -> str:
    tag = match.group()
    changed = tag.translate(_HARMLESS)
    return changed if changed != tag else tag[0] + _JOINER + tag[1:]
