"""Where a text goes while it is written: in one piece, or what is large kept apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from weft.core.list_prefixes import Items, ListPrefixCache

Keep = Callable[[str], str]
"""Keeps a text apart and returns its name, which is the same for the same text."""

Writer = Callable[[Any, "Sink"], str]
"""Writes a value, for a sink."""

APART: Final = 256
"""Characters from which a text is kept apart."""
CHUNK: Final = 512
_WORTH_KNOWING: Final = 32  # characters; what is kept apart has a reference of that length
LARGEST: Final = 1 << 28


class Unwritable(Exception):
    """Nested too deep, or too large; a reader would refuse it too."""


class ListText(NamedTuple):
    """A list as `text`: its full `chunks`, kept apart, and the texts of the items behind them.

    `apart`: the characters that were kept apart for its items.
    """

    chunks: tuple[str, ...]
    rest: tuple[str, ...]
    text: str
    apart: int


class WrittenLists:
    """Lists whose parts are kept already, by what writes their items.

    It has to be cleared where what was written since is not kept, or no record refers to it.
    """

    def __init__(self) -> None:
        self._caches: dict[object, ListPrefixCache[ListText]] = {}

    def by(self, write: object) -> ListPrefixCache[ListText]:
        """Those whose items `write` has written."""
        if write not in self._caches:
            self._caches[write] = ListPrefixCache()
        return self._caches[write]

    def clear(self) -> None:
        """Forget all."""
        self._caches.clear()


class Sink:
    """Where a text goes while it is written. Without `keep` all of it stays in one piece.

    `as_lists`: objects of classes that have a layout are lists where their class is known.
    `lists`: what was kept before; of a list that grew only what is new is written.
    """

    __slots__ = ("_texts", "as_lists", "depth", "keep", "lists", "total")

    def __init__(
        self, keep: Keep | None, as_lists: bool = False, lists: WrittenLists | None = None
    ) -> None:
        self.keep = keep
        self.lists = lists
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

    def listed(self, texts: Sequence[str], size: int = CHUNK, *, counted: bool = False) -> str:
        """A list of items, in chunks when it is long: a list that grew shares its beginning.

        A chunk has texts of `size` characters; so many items, where they are `counted`.
        """
        if self.keep is None or _weight(texts, counted) <= size:
            return f"[{','.join(texts)}]"
        return self._tree(self._folded(_chunks(texts, size, counted)))

    def grown(
        self, items: Items, write: Writer, size: int = CHUNK, *, counted: bool = False
    ) -> str:
        """As `listed`, of the texts that `write` makes of `items`; what is known is not written."""
        lists, keep = self.lists, self.keep
        cache = None if lists is None or keep is None else lists.by(write)
        prefix = None if cache is None else cache.find(items)
        if cache is None or prefix is None:
            return self.listed([write(item, self) for item in items], size, counted=counted)
        known = prefix.state or ListText((), (), "", 0)
        before, self.total = self.total, self.total + known.apart
        if prefix.length < len(items):
            known = self._longer(known, items[prefix.length :], write, size, counted)
            known = known._replace(apart=known.apart - before)
        cache.keep(prefix, items, known, 64 * len(known.chunks) + 2 * size)
        return known.text

    def _longer(
        self, known: ListText, new: Items, write: Writer, size: int, counted: bool
    ) -> ListText:
        lists, self.lists = self.lists, None  # lists inside are found with this one
        try:
            texts = [*known.rest, *[write(item, self) for item in new]]
        finally:
            self.lists = lists
        if not known.chunks and _weight(texts, counted) <= size:
            return ListText((), tuple(texts), f"[{','.join(texts)}]", self.total)
        *full, rest = _chunks(texts, size, counted)
        chunks = [*known.chunks, *self._folded(full)]
        apart = self.total  # without what the next ones replace
        text = self._tree([*chunks, *self._folded([rest])])
        return ListText(tuple(chunks), tuple(rest), text, apart)

    def _folded(self, chunks: Iterable[Sequence[str]]) -> list[str]:
        return [self.fold(f"[{','.join(chunk)}]") for chunk in chunks]

    def _tree(self, folded: Sequence[str]) -> str:
        """The lists `folded` as one."""
        if sum(map(len, folded)) <= CHUNK or len(folded) == 1:
            return f'{{"~l":[{",".join(folded)}]}}'
        inner = [f'{{"~l":[{",".join(chunk)}]}}' for chunk in _chunks(folded, CHUNK)]
        return self._tree([self.fold(text) for text in inner])


def _weight(texts: Sequence[str], counted: bool) -> int:
    return len(texts) if counted else sum(map(len, texts))


def _chunks(texts: Sequence[str], least: int, counted: bool = False) -> Iterable[Sequence[str]]:
    start = size = 0
    for end, text in enumerate(texts, 1):
        size += 1 if counted else len(text)
        if size >= least:
            yield texts[start:end]
            start, size = end, 0
    if start < len(texts):
        yield texts[start:]
