"""YAML text to a bounded tree.

The text is untrusted: it is refused when it is large, deep or not UTF-8, or when its aliases expand
to more values than a document may have. Tags, merge keys and duplicate keys are not supported.
Plain scalars follow the core schema of YAML 1.2: `no`, `on` and `2026-01-31` are texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from weft.core.errors import SourceError
from weft.workflow.document.source.tree import (
    SourcePosition,
    SourceText,
    Tree,
    YamlMapping,
    YamlScalar,
    YamlSequence,
    walk,
)

_NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
_TRUE = re.compile(r"(?:true|True|TRUE)\Z")
_FALSE = re.compile(r"(?:false|False|FALSE)\Z")
_DECIMAL = re.compile(r"[-+]?[0-9]+\Z")
_OCTAL = re.compile(r"0o[0-7]+\Z")
_HEX = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_JSON = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
_MAX_DIGITS = 300


def resolve(text: str) -> bool | int | float | str | None:
    """The value of a plain scalar. Raises: `ValueError` for numbers without a JSON form."""
    if _NULL.match(text):
        return None
    if _TRUE.match(text) or _FALSE.match(text):
        return text[0] in "tT"
    return _number(text) if text[0] in "+-.0123456789" else text


def join_surrogates(text: str) -> str:
    """`text` with escaped surrogate pairs, as JSON writes them, joined to characters.

    Raises: `ValueError` for half a pair.
    """
    if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("half of a surrogate pair is not a character") from None


def _number(text: str) -> int | float | str:
    if _NOT_JSON.match(text):
        raise ValueError(f"{text} is not a number that JSON can hold")
    for pattern, base in ((_DECIMAL, 10), (_OCTAL, 8), (_HEX, 16)):
        if pattern.match(text):
            if len(text) > _MAX_DIGITS:
                raise ValueError(f"a number of {len(text)} digits is too long")
            return int(text, base)
    if not _FLOAT.match(text):
        return text
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large for a number")
    return number


MAX_DEPTH = 60
MAX_VALUES = 100_000
_TOO_MANY = "split the workflow into several files; unfolded aliases count as well"


@dataclass(slots=True)
class _OpenCollection:
    """A list or a mapping whose end has not been read."""

    place: SourcePosition
    is_mapping: bool
    anchor: str | None
    items: list[Tree] = field(default_factory=list)
    entries: list[tuple[str, SourcePosition, Tree]] = field(default_factory=list)
    keys: dict[str, SourcePosition] = field(default_factory=dict)
    key: tuple[str, SourcePosition] | None = None


class TreeBuilder:
    """Builds the tree of one document from its events."""

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._open: list[_OpenCollection] = []
        self._anchors: dict[str, tuple[Tree, int]] = {}
        self._values = 0
        self._documents = 0
        self._root: Tree | None = None

    def take(self, event: Event) -> None:
        """Add the next event. Raises: `SourceError` for unsupported content."""
        place = SourcePosition(event.start_mark.line + 1, event.start_mark.column + 1)
        match event:
            case DocumentStartEvent():
                self._start_document(place, event.version)
            case AliasEvent():
                self._alias(place, event.anchor)
            case ScalarEvent():
                self._scalar(replace(place, block=event.style == "|"), event)
            case MappingStartEvent() | SequenceStartEvent():
                self._start(place, event)
            case CollectionEndEvent():
                self._end()

    def _start_document(self, place: SourcePosition, version: tuple[int, int] | None) -> None:
        self._documents += 1
        if self._documents > 1:
            self._refuse("a second document begins here", place, "keep one workflow in one file")
        if version is not None and tuple(version) != (1, 2):
            self._refuse("weft reads YAML 1.2", place, "remove the %YAML line")

    def _scalar(self, place: SourcePosition, event: ScalarEvent) -> None:
        self._check_tag(event, place)
        plain = event.style is None
        try:
            text = join_surrogates(event.value)
        except ValueError as error:
            self._refuse(str(error), place, "write the character itself")
        if self._expects_key():
            self._take_key(text, place, event.anchor, plain=plain)
            return
        try:
            tree = YamlScalar(resolve(text) if plain else text, place)
        except ValueError as error:
            self._refuse(str(error), place, "quote it to make it a text")
        self._count(1, place)
        if event.anchor is not None:
            self._anchors[event.anchor] = tree, 1
        self._put(tree)

    def _alias(self, place: SourcePosition, anchor: str) -> None:
        if self._expects_key():
            self._refuse("an alias cannot be a key", place, "write the key out")
        if anchor not in self._anchors:
            hint = f"mark a value before it, with &{anchor}"
            self._refuse(f"*{anchor} repeats nothing", place, hint)
        tree, size = self._anchors[anchor]
        self._count(size, place)
        self._put(tree)

    def _start(self, place: SourcePosition, event: MappingStartEvent | SequenceStartEvent) -> None:
        self._check_tag(event, place)
        is_mapping = isinstance(event, MappingStartEvent)
        if self._expects_key():
            hint = 'quote an expression: "{{ name }}"' if is_mapping else "quote it"
            self._refuse("a key must be a text", place, hint)
        if len(self._open) >= MAX_DEPTH:
            hint = "move inner parts into a sub-workflow"
            self._refuse(f"nested more than {MAX_DEPTH} levels deep", place, hint)
        self._count(1, place)
        self._open.append(_OpenCollection(place, is_mapping, event.anchor))

    def _end(self) -> None:
        closed = self._open.pop()
        tree: Tree = (
            YamlMapping(tuple(closed.entries), closed.place)
            if closed.is_mapping
            else YamlSequence(tuple(closed.items), closed.place)
        )
        if closed.anchor is not None:
            self._anchors[closed.anchor] = tree, sum(1 for _ in walk(tree))
        self._put(tree)

    def finish(self) -> Tree:
        """The document's tree. Raises: `SourceError` for an empty file."""
        if self._root is None:
            hint = "a workflow has at least `nodes:` and `outputs:`"
            self._refuse("the file is empty", SourcePosition(), hint)
        return self._root

    def _expects_key(self) -> bool:
        return bool(self._open) and self._open[-1].is_mapping and self._open[-1].key is None

    def _take_key(
        self, text: str, place: SourcePosition, anchor: str | None, *, plain: bool
    ) -> None:
        inner = self._open[-1]
        if anchor is not None:
            self._refuse("a key cannot carry an anchor", place, "put the anchor on the value")
        if text == "<<" and plain:
            self._refuse("YAML merge keys are not supported", place, "write the keys out")
        if text in inner.keys:
            hint = f"the first one is on line {inner.keys[text].line}"
            self._refuse(f"{text!r} stands here twice", place, hint)
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

    def _count(self, values: int, place: SourcePosition) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            self._refuse(f"the document holds more than {MAX_VALUES:,} values", place, _TOO_MANY)

    def _check_tag(self, event: NodeEvent, place: SourcePosition) -> None:
        tag = getattr(event, "tag", None)
        if tag is not None:
            shown = str(tag).replace("tag:yaml.org,2002:", "!!")
            hint = "workflows are plain data: remove it"
            self._refuse(f"the tag {shown} is not allowed", place, hint)

    def _refuse(self, message: str, place: SourcePosition, hint: str) -> NoReturn:
        raise self._source.error(message, place, hint)


MAX_BYTES = 4_000_000


def read_file(path: Path) -> tuple[SourceText, Tree]:
    """The text of the file and its tree. Raises: `SourceError`, also for an unreadable file."""
    file = str(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SourceError(
            f"cannot read the file: {reason}", file=file, hint="give the path of a YAML file"
        ) from error
    return read_bytes(data, file)


def read_bytes(data: bytes, file: str) -> tuple[SourceText, Tree]:
    """Like `read_text`, for undecoded bytes. Raises: `SourceError`."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", errors="replace")
        raise SourceError(
            "the file is not UTF-8 text",
            file=file,
            line=before.count("\n") + 1,
            column=len(before) - before.rfind("\n"),
            hint="save it in UTF-8",
        ) from error
    return read_text(text, file)


def read_text(text: str, file: str) -> tuple[SourceText, Tree]:
    """The text and its tree. Raises: `SourceError` with the position of the first defect."""
    source = SourceText(file, text)
    if len(text) > MAX_BYTES:
        raise source.error(
            f"the file is larger than {MAX_BYTES:,} characters",
            SourcePosition(),
            "keep data in files that tools read, and include other workflows",
        )
    builder = TreeBuilder(source)
    for event in _events(source):
        builder.take(event)
    return source, builder.finish()


def _events(source: SourceText) -> Iterator[Event]:
    parser = YAML(typ="safe", pure=True)
    try:
        yield from parser.parse(source.text)
    except SourceError:
        raise
    except ReaderError as error:
        before = source.text[: error.position]
        place = SourcePosition(before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise source.error(
            "a control character does not belong here", place, "remove it or write it escaped"
        ) from error
    except MarkedYAMLError as error:
        raise _syntax_error(source, error) from error
    except YAMLError as error:
        raise source.error(f"not YAML: {error}", SourcePosition()) from error
    except Exception as error:  # on odd input the parser raises other errors
        raise source.error(f"not YAML: {error}", SourcePosition()) from error


def _syntax_error(source: SourceText, error: MarkedYAMLError) -> SourceError:
    problem = (error.problem or "syntax error").replace("\n", " ")
    begin, end = error.context_mark, error.problem_mark
    mark = begin if begin is not None and "end of stream" in problem else end or begin
    place = SourcePosition(mark.line + 1, mark.column + 1) if mark is not None else SourcePosition()
    context = f" {error.context}" if error.context else ""
    if context and begin is not None and begin.line + 1 != place.line:
        context += f" that begins on line {begin.line + 1}"
    return source.error(f"not YAML{context}: {problem}", place, _remedy(problem))


def _remedy(problem: str) -> str:
    remedies = {
        "\\t": "indent with blanks, not with tabs",
        "mapping values": "quote a text that contains a colon",
        "block end": "check the indentation of this line",
        "end of stream": "close the quote or the bracket",
        "undefined alias": "define it first, with &name",
        "cannot start any token": "quote a text that begins with this character",
    }
    matching = (remedy for sign, remedy in remedies.items() if sign in problem)
    return next(matching, "check the indentation, the quotes and the brackets")
