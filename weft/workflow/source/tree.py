"""A parsed document as a tree in which every key and every value knows its place.

Knows nothing of what the document means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.workflow.source.place import Path, Place

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value: None, a truth value, a number or a text."""

    value: bool | int | float | str | None
    place: Place


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    items: tuple[Tree, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping. Keys are texts, each once, in the order of the file."""

    entries: tuple[tuple[str, Place, Tree], ...]
    place: Place


Tree = Scalar | Sequence | Mapping


def plain(tree: Tree) -> Json:
    """The tree without its places: what `json` would load."""
    match tree:
        case Scalar(value):
            return value
        case Sequence(items):
            return [plain(item) for item in items]
        case Mapping(entries):
            return {key: plain(value) for key, _, value in entries}


def step(tree: Tree, key: str | int) -> tuple[Place, Tree] | None:
    """The place of the key and the value under `key`, or None when there is none."""
    if isinstance(tree, Mapping):
        found = ((place, value) for name, place, value in tree.entries if name == key)
        return next(found, None)
    if isinstance(tree, Sequence) and isinstance(key, int) and 0 <= key < len(tree.items):
        return tree.items[key].place, tree.items[key]
    return None


def place_of(tree: Tree, path: Path, *, key: bool = False) -> Place:
    """Where the value at `path` stands (or its key), or the nearest enclosing one that exists."""
    place = tree.place
    for part in path:
        found = step(tree, part)
        if found is None:
            return place
        key_place, tree = found
        place = key_place if key else tree.place
    return place


def walk(tree: Tree) -> Iterator[Tree]:
    """The tree and everything in it."""
    yield tree
    match tree:
        case Sequence(items):
            for item in items:
                yield from walk(item)
        case Mapping(entries):
            for _, _, value in entries:
                yield from walk(value)
