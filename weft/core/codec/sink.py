"""Where a text goes while it is written: in one piece, or what is large kept apart.

Does not know what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

Keep = Callable[[str], str]
"""Keeps a text apart and returns its name, which is the same for the same text."""

APART: Final = 256
"""Characters from which a text is kept apart."""
CHUNK: Final = 512
_WORTH_KNOWING: Final = 32  # characters; what is kept apart has a reference of that length
LARGEST: Final = 1 << 28


class Unwritable(Exception):
    """Nested too deep, or too large; a reader would refuse it too."""


class Sink:
    """Where a text goes while it is written. Without `keep` all of it stays in one piece.

    `as_lists`: objects of classes that have a layout are lists where their class is known.
    """

    __slots__ = ("_texts", "as_lists", "depth", "keep", "total")

    def __init__(self, keep: Keep | None, as_lists: bool = False) -> None:
        self.keep = keep
        self.as_lists = as_lists
        self.depth = 0
        self.total = 0
        self._texts: dict[int, tuple[object, str]] = {}

    def known(self, value: object) -> str | None:
        """The text of a value that was written before: a call's result is its node's as well."""
        found = self._texts.get(id(value))
        return None if found is None else found[1]

    def remember(self, value: object, text: str) -> None:
        """`value` was written as `text`."""
        if len(text) >= _WORTH_KNOWING:
            self._texts[id(value)] = value, text  # which keeps the value, so that its id is its own

    def fold(self, text: str, limit: int = APART) -> str:
        """`text`, or the reference that stands for it."""
        if len(text) <= limit or self.keep is None:
            return text
        self.total += len(text)
        if self.total > LARGEST:
            raise Unwritable
        return f'{{"~r":"{self.keep(text)}"}}'

    def listed(self, texts: Sequence[str], size: int = CHUNK) -> str:
        """A list of items, in chunks when it is long: a list that grew shares its beginning."""
        if self.keep is None or sum(map(len, texts)) <= size:
            return f"[{','.join(texts)}]"
        return self.chunked([f"[{','.join(chunk)}]" for chunk in _chunks(texts, size)])

    def chunked(self, chunks: list[str]) -> str:
        """The tree of `chunks`, each of them a list."""
        folded = [self.fold(chunk) for chunk in chunks]
        if sum(map(len, folded)) <= CHUNK or len(folded) == 1:
            return f'{{"~l":[{",".join(folded)}]}}'
        return self.chunked([f'{{"~l":[{",".join(inner)}]}}' for inner in _chunks(folded, CHUNK)])


def _chunks(texts: Sequence[str], least: int) -> Iterable[Sequence[str]]:
    start = size = 0
    for end, text in enumerate(texts, 1):
        size += len(text)
        if size >= least:
            yield texts[start:end]
            start, size = end, 0
    if start < len(texts):
        yield texts[start:]
