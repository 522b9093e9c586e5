"""Builds the tree from parser events, and refuses what would make it too large.

Knows neither YAML's syntax nor what the document means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from weft.workflow.source.place import Place, Source
from weft.workflow.source.scalars import joined, resolve
from weft.workflow.source.tree import Mapping, Scalar, Sequence, Tree, walk

MAX_DEPTH = 60
MAX_VALUES = 100_000
_TOO_MANY = "split the workflow into several files; unfolded aliases count as well"


@dataclass(slots=True)
class _Open:
    """A list or a mapping that is not closed yet."""

    place: Place
    is_mapping: bool
    anchor: str | None
    items: list[Tree] = field(default_factory=list)
    entries: list[tuple[str, Place, Tree]] = field(default_factory=list)
    keys: dict[str, Place] = field(default_factory=dict)
    key: tuple[str, Place] | None = None


class Builder:
    """Takes the events of one document in order; `finish` gives the tree."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Tree, int]] = {}
        self._values = 0
        self._documents = 0
        self._root: Tree | None = None

    def start_document(self, place: Place, version: tuple[int, int] | None) -> None:
        """A document begins. Raises: `SourceError` for a second one, or another YAML version."""
        self._documents += 1
        if self._documents > 1:
            self._refuse("a second document begins here", place, "keep one workflow in one file")
        if version is not None and tuple(version) != (1, 2):
            self._refuse("weft reads YAML 1.2", place, "remove the %YAML line")

    def scalar(
        self, place: Place, text: str, *, plain: bool, anchor: str | None, tag: str | None
    ) -> None:
        """A single value; `plain` when it is written without quotes."""
        self._check_tag(tag, place)
        try:
            text = joined(text)
        except ValueError as error:
            self._refuse(str(error), place, "write the character itself")
        if self._expects_key():
            self._take_key(text, place, anchor, plain=plain)
            return
        try:
            tree = Scalar(resolve(text) if plain else text, place)
        except ValueError as error:
            self._refuse(str(error), place, "quote it to make it a text")
        self._count(1, place)
        self._remember(anchor, tree, 1)
        self._put(tree)

    def alias(self, place: Place, anchor: str) -> None:
        """A repetition of an earlier value."""
        if self._expects_key():
            self._refuse("an alias cannot be a key", place, "write the key out")
        found = self._anchors.get(anchor)
        if found is None:
            self._refuse(
                f"*{anchor} repeats nothing", place, f"mark a value before it, with &{anchor}"
            )
        tree, size = found
        self._count(size, place)
        self._put(tree)

    def start(self, place: Place, *, is_mapping: bool, anchor: str | None, tag: str | None) -> None:
        """A list or a mapping begins."""
        self._check_tag(tag, place)
        if self._expects_key():
            hint = 'quote an expression: "{{ name }}"' if is_mapping else "quote it"
            self._refuse("a key must be a text", place, hint)
        if len(self._open) >= MAX_DEPTH:
            self._refuse(
                f"nested more than {MAX_DEPTH} levels deep",
                place,
                "move inner parts into a sub-workflow",
            )
        self._count(1, place)
        self._open.append(_Open(place, is_mapping, anchor))

    def end(self) -> None:
        """The innermost list or mapping ends."""
        closed = self._open.pop()
        tree: Tree = (
            Mapping(tuple(closed.entries), closed.place)
            if closed.is_mapping
            else Sequence(tuple(closed.items), closed.place)
        )
        if closed.anchor is not None:
            self._remember(closed.anchor, tree, sum(1 for _ in walk(tree)))
        self._put(tree)

    def finish(self) -> Tree:
        """The whole document. Raises: `SourceError` when there is none."""
        if self._root is None:
            self._refuse(
                "the file is empty", Place(), "a workflow has at least `nodes:` and `outputs:`"
            )
        return self._root

    def _expects_key(self) -> bool:
        return bool(self._open) and self._open[-1].is_mapping and self._open[-1].key is None

    def _take_key(self, text: str, place: Place, anchor: str | None, *, plain: bool) -> None:
        inner = self._open[-1]
        if anchor is not None:
            self._refuse("a key cannot carry an anchor", place, "put the anchor on the value")
        if text == "<<" and plain:
            self._refuse("YAML merge keys are not supported", place, "write the keys out")
        if text in inner.keys:
            self._refuse(
                f"{text!r} stands here twice",
                place,
                f"the first one is on line {inner.keys[text].line}",
            )
        inner.keys[text] = place
        inner.key = (text, place)

    def _put(self, tree: Tree) -> None:
        if not self._open:
            self._root = tree
            return
        inner = self._open[-1]
        if inner.key is not None:
            inner.entries.append((*inner.key, tree))
            inner.key = None
        else:
            inner.items.append(tree)

    def _remember(self, anchor: str | None, tree: Tree, size: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (tree, size)

    def _count(self, values: int, place: Place) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            self._refuse(f"the document holds more than {MAX_VALUES:,} values", place, _TOO_MANY)

    def _check_tag(self, tag: str | None, place: Place) -> None:
        if tag is not None:
            shown = tag.replace("tag:yaml.org,2002:", "!!")
            hint = "workflows are plain data: remove it"
            self._refuse(f"the tag {shown} is not allowed", place, hint)

    def _refuse(self, message: str, place: Place, hint: str) -> NoReturn:
        raise self._source.error(message, place, hint)
