"""Results for lists, reused for longer lists with the same beginning.

A conversation is encoded and hashed whole in every turn, and each turn adds only a few messages.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from weft.core.values import Message, ToolCall

S = TypeVar("S")
Items: TypeAlias = list[Any] | tuple[Any, ...]

SHORTEST: Final = 8
"""Lists shorter than this are not looked up: recomputing their results is cheap."""
_MOST_BYTES: Final = 4 << 20
_MOST_ENTRIES: Final = 64
_VERSION: Final = 2  # marshal's last format without references: equal values, equal bytes
_HEAD: Final = len(marshal.dumps([], _VERSION))
_SCALARS: Final = frozenset((str, int, float, bool, type(None)))


class _Entry(NamedTuple, Generic[S]):
    """`body`: the content key of the items. `size_bytes`: the rough size of the entry."""

    head: object
    length: int
    body: bytes | tuple[Any, ...]
    state: S
    size_bytes: int


class ListPrefix(NamedTuple, Generic[S]):
    """The first `length` items of a list, for which a `state` is cached (None: for no item).

    `key` identifies all items of the list, `head` the first. `entry`: where the state comes from.
    """

    length: int
    state: S | None
    key: bytes | tuple[Any, ...]
    head: object
    entry: _Entry[S] | None


class ListPrefixCache(Generic[S]):
    """An LRU cache of states of lists, by the exact content of their items, of bounded size.

    A state is computed item by item, so the state of a longer list extends that of its beginning.
    Lists and tuples of the same items are equal here. The cache takes lists of plain JSON values,
    keyed by content, so that a changed list is another one, and lists of messages, which are
    immutable.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._size_bytes = self._count = 0
        self._entries: dict[object, list[_Entry[S]]] = {}  # by the first item, the latest last

    def find(self, items: Items) -> ListPrefix[S] | None:
        """The longest cached beginning of `items`; None where they cannot be looked up."""
        if len(items) < SHORTEST:
            return None
        keys = _key(items)
        if keys is None:
            return None
        head, key = keys
        best: _Entry[S] | None = None
        for entry in self._entries.get(head, ()):
            if (best is None or entry.length > best.length) and _begins(key, entry):
                best = entry
        if best is None:
            return ListPrefix(0, None, key, head, None)
        return ListPrefix(best.length, best.state, key, head, best)

    def keep(self, prefix: ListPrefix[S], items: Items, state: S, size_bytes: int = 0) -> None:
        """Cache `state` for `items`, for which `find` gave `prefix`; it takes `size_bytes`.

        It replaces the entry that it extends.
        """
        entry, key = prefix.entry, prefix.key
        if entry is None or entry.length < len(items):
            new = items[prefix.length :]
            if not (_are_plain(new) if isinstance(key, bytes) else _are_messages(new)):
                return
            body = key[_HEAD:] if isinstance(key, bytes) else key
            size = size_bytes + (len(body) if isinstance(body, bytes) else 64 * len(body))
            entry = _Entry(prefix.head, len(items), body, state, size)
        entries = self._entries.pop(prefix.head, [])
        if prefix.entry is not None:
            self._drop(entries, prefix.entry)
        self._entries[prefix.head] = [*entries, entry]
        self._size_bytes += entry.size_bytes
        self._count += 1
        while self._size_bytes > self._most_bytes or self._count > _MOST_ENTRIES:
            head, oldest = next(iter(self._entries.items()))
            self._drop(oldest, oldest[0])
            if not oldest:
                del self._entries[head]

    def _drop(self, entries: list[_Entry[S]], entry: _Entry[S]) -> None:
        for place, other in enumerate(entries):
            if other is entry:
                del entries[place]
                self._size_bytes -= entry.size_bytes
                self._count -= 1
                return


def _key(items: Items) -> tuple[object, bytes | tuple[Any, ...]] | None:
    """The keys of the first item and of all items; None for lists that are not looked up."""
    first = items[0]
    kind = type(first)
    if kind in _SCALARS or kind is list or kind is dict or kind is tuple:
        try:
            return marshal.dumps(first, _VERSION), marshal.dumps(items, _VERSION)
        except ValueError:  # something that is not plain
            return None
    if kind is Message:
        key = tuple(items)
        return (first, key) if _are_messages(key[:1]) else None
    return None


def _begins(key: bytes | tuple[Any, ...], entry: _Entry[Any]) -> bool:
    body = entry.body
    if isinstance(key, bytes):
        # Each item encodes its own end, so equal bytes are equal items.
        return isinstance(body, bytes) and key.startswith(body, _HEAD)
    try:
        return isinstance(body, tuple) and bool(key[: entry.length] == body)
    except Exception:  # noqa: BLE001 - a foreign object may raise anything when it is compared
        return False


def _are_plain(parts: Iterable[Any]) -> bool:
    """Whether all parts are plain JSON values. Marshal writes other buffers as it writes bytes."""
    for part in parts:
        kind = type(part)
        if kind in _SCALARS:
            continue
        if kind is dict:
            if not (_are_plain(part) and _are_plain(part.values())):
                return False
        elif not ((kind is list or kind is tuple) and _are_plain(part)):
            return False
    return True


def _are_messages(items: Iterable[Any]) -> bool:
    """Whether all are messages whose fields have exact types, so that equal means identical."""
    return all(
        type(item) is Message
        and _are_texts(item.role, item.content)
        and (item.tool_call_id is None or _are_texts(item.tool_call_id))
        and type(item.tool_calls) is tuple
        and all(map(_is_call, item.tool_calls))
        for item in items
    )


def _is_call(item: Any) -> bool:
    return type(item) is ToolCall and _are_texts(item.id, item.name, item.arguments)


def _are_texts(*texts: Any) -> bool:
    return all(type(text) is str for text in texts)
