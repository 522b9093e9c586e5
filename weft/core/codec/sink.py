"""The output of a writer: one text, whose large parts are stored apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from weft.core.list_prefixes import Items, ListPrefixCache

Keep = Callable[[str], str]
"""Stores a text apart and returns its name, the same for the same text."""

Writer = Callable[[Any, "Sink"], str]
"""Writes a value to a sink."""

APART: Final = 256
"""Length from which a text is stored apart, in characters."""
CHUNK: Final = 512
_WORTH_REMEMBERING: Final = 32  # characters; the length of a reference to a stored text
LARGEST: Final = 1 << 28


class Unwritable(Exception):
    """A value nested too deep, or too large; a reader would refuse it too."""


class ListText(NamedTuple):
    """A list as `text`: its full `chunks`, stored apart, and the texts of the items after them.

    `apart`: how many characters were stored apart for its items.
    """

    chunks: tuple[str, ...]
    rest: tuple[str, ...]
    text: str
    apart: int


class WrittenLists:
    """Lists whose beginnings are stored already, by the writer of their items.

    Clear it when texts written since are not stored, or when no record refers to them.
    """

    def __init__(self) -> None:
        self._caches: dict[object, ListPrefixCache[ListText]] = {}

    def by(self, write: object) -> ListPrefixCache[ListText]:
        """The lists whose items `write` has written."""
        if write not in self._caches:
            self._caches[write] = ListPrefixCache()
        return self._caches[write]

    def clear(self) -> None:
        """Forget all lists."""
        self._caches.clear()


class Sink:
    """The output of one record. Without `keep` its text stays in one piece.

    `as_lists`: objects of classes with a layout become lists where their class is implied.
    `lists`: what was stored before; of a list that grew only the new items are written.
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
        """The text of a value written before: a call's result is usually its node's too."""
        found = self._texts.get(id(value))
        return None if found is None else found[1]

    def remember(self, value: object, text: str) -> None:
        """Note that `value` was written as `text`."""
        if len(text) >= _WORTH_REMEMBERING:
            self._texts[id(value)] = value, text  # a reference to the value keeps its id unique

    def fold(self, text: str, limit: int = APART) -> str:
        """`text`, or a reference to it if it is longer than `limit`."""
        if len(text) <= limit or self.keep is None:
            return text
        self.total += len(text)
        if self.total > LARGEST:
            raise Unwritable
        return f'{{"~r":"{self.keep(text)}"}}'

    def listed(self, texts: Sequence[str], size: int = CHUNK, *, counted: bool = False) -> str:
        """A list of items, in chunks if it is long: a list that grew shares its beginning.

        Chunks have `size` characters, or `size` items if `counted`.
        """
        if self.keep is None or _weight(texts, counted) <= size:
            return f"[{','.join(texts)}]"
        return self._tree(self._folded(_chunks(texts, size, counted)))

    def grown(
        self, items: Items, write: Writer, size: int = CHUNK, *, counted: bool = False
    ) -> str:
        """As `listed`, of the texts of `items`; a stored beginning is not written again."""
        lists, keep = self.lists, self.keep
        cache = None if lists is None or keep is None else lists.by(write)
        prefix = None if cache is None else cache.find(items)
        if cache is None or prefix is None:
            return self.listed([write(item, self) for item in items], size, counted=counted)
        written = prefix.state or ListText((), (), "", 0)
        before, self.total = self.total, self.total + written.apart
        if prefix.length < len(items):
            written = self._longer(written, items[prefix.length :], write, size, counted)
            written = written._replace(apart=written.apart - before)
        cache.keep(prefix, items, written, 64 * len(written.chunks) + 2 * size)
        return written.text

    def _longer(
        self, start: ListText, new: Items, write: Writer, size: int, counted: bool
    ) -> ListText:
        lists, self.lists = self.lists, None  # nested lists are found as parts of this one
        try:
            texts = [*start.rest, *[write(item, self) for item in new]]
        finally:
            self.lists = lists
        if not start.chunks and _weight(texts, counted) <= size:
            return ListText((), tuple(texts), f"[{','.join(texts)}]", self.total)
        *full, rest = _chunks(texts, size, counted)
        chunks = [*start.chunks, *self._folded(full)]
        apart = self.total  # without the last chunk, which later items replace
        text = self._tree([*chunks, *self._folded([rest])])
        return ListText(tuple(chunks), tuple(rest), text, apart)

    def _folded(self, chunks: Iterable[Sequence[str]]) -> list[str]:
        return [self.fold(f"[{','.join(chunk)}]") for chunk in chunks]

    def _tree(self, folded: Sequence[str]) -> str:
        """The concatenation of the lists `folded`."""
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
