"""YAML text to a tree, within bounds. Knows nothing of what the document means.

The text is hostile: it is refused when it is large, deep, not UTF-8, or when its aliases would
unfold to more than a document may hold. Tags, merge keys and duplicate keys do not exist here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath

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
from weft.workflow.source.builder import Builder
from weft.workflow.source.place import Place, Source
from weft.workflow.source.tree import Tree

MAX_BYTES = 4_000_000


def read_file(path: FilePath) -> tuple[Source, Tree]:
    """The text of the file and its tree. Raises: `SourceError`, also when it cannot be read."""
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


def read_bytes(data: bytes, file: str) -> tuple[Source, Tree]:
    """Like `read_text`, for what has not been decoded. Raises: `SourceError`."""
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


def read_text(text: str, file: str) -> tuple[Source, Tree]:
    """The text and its tree. Raises: `SourceError` with the place of the first defect."""
    source = Source(file, text)
    if len(text) > MAX_BYTES:
        raise source.error(
            f"the file is larger than {MAX_BYTES:,} characters",
            Place(),
            "keep data in files that tools read, and include other workflows",
        )
    builder = Builder(source)
    for event in _events(source):
        _feed(builder, event)
    return source, builder.finish()


def _events(source: Source) -> Iterator[Event]:
    parser = YAML(typ="safe", pure=True)
    try:
        yield from parser.parse(source.text)
    except SourceError:
        raise
    except ReaderError as error:
        before = source.text[: error.position]
        place = Place(before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise source.error(
            "a control character does not belong here", place, "remove it or write it escaped"
        ) from error
    except MarkedYAMLError as error:
        raise _syntax_error(source, error) from error
    except YAMLError as error:
        raise source.error(f"not YAML: {error}", Place()) from error
    except Exception as error:  # on odd input the parser raises what it likes
        raise source.error(f"not YAML: {error}", Place()) from error


def _syntax_error(source: Source, error: MarkedYAMLError) -> SourceError:
    problem = (error.problem or "syntax error").replace("\n", " ")
    begin, end = error.context_mark, error.problem_mark
    mark = begin if begin is not None and "end of stream" in problem else end or begin
    place = Place(mark.line + 1, mark.column + 1) if mark is not None else Place()
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
    found = (remedy for sign, remedy in remedies.items() if sign in problem)
    return next(found, "check the indentation, the quotes and the brackets")


def _feed(builder: Builder, event: Event) -> None:
    place = Place(event.start_mark.line + 1, event.start_mark.column + 1)
    match event:
        case DocumentStartEvent():
            builder.start_document(place, event.version)
        case AliasEvent():
            builder.alias(place, event.anchor)
        case ScalarEvent():
            block = event.style == "|"
            builder.scalar(
                Place(place.line, place.column, block),
                event.value,
                plain=event.style is None,
                anchor=event.anchor,
                tag=_tag(event),
            )
        case MappingStartEvent() | SequenceStartEvent():
            kind = isinstance(event, MappingStartEvent)
            builder.start(place, is_mapping=kind, anchor=event.anchor, tag=_tag(event))
        case CollectionEndEvent():
            builder.end()
        case _:
            pass


def _tag(event: NodeEvent) -> str | None:
    tag = getattr(event, "tag", None)
    return None if tag is None else str(tag)
