"""Cassette files: a recorded run with one JSON object a line, to store, to send, to test with.

The file is data: reading it creates registered classes only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from weft.core.calls import CallEvent
from weft.core.codec import decode, encode
from weft.core.errors import RunExists, SourceError, StoreError
from weft.core.events import Event
from weft.core.ids import RunId
from weft.core.ports.journal import Journal, NumberedRecord, RunHeader
from weft.workflow.document.secrets import secret_mark
from weft.workflow.history.run_history import LOST, RunHistory

FORMAT: Final = 1
_MOST_BYTES: Final = 2**30
_LONGEST_LINE: Final = 2**28
_BATCH: Final = 500
_PRIVATE: Final = ("folder",)


def write_cassette(history: RunHistory, path: Path) -> int:
    """Write a run to `path`, replacing it, and return the number of bytes.

    Data about this machine is left out: the workflow's folder, and the names of unrelated secrets.
    Raises: `StoreError`.
    """
    texts = [encode(numbered.record) for numbered in history.records]
    header = replace(_without_places(history.header), secrets=_hidden(history, texts))
    if history.losses.notes:  # a process that resumes it elsewhere must know
        lost = {LOST: list(history.losses.notes)}
        header = replace(header, settings={**header.settings, **lost})
    begun = path.with_name(f".{path.name}.part")
    try:
        with begun.open("w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(json.dumps({"weft_cassette": FORMAT}) + "\n")
            file.write(encode(header) + "\n")
            for numbered, text in zip(history.records, texts, strict=True):
                file.write(f"[{numbered.seq},{numbered.part},{text}]\n")
        size = begun.stat().st_size
        begun.replace(path)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            begun.unlink(missing_ok=True)
    return size


def read_cassette(path: Path) -> RunHistory:
    """The run in a file. Raises: `SourceError`, with the line of the defect."""
    try:
        with path.open(encoding="utf-8", errors="surrogatepass") as file:
            if path.stat().st_size > _MOST_BYTES:
                raise SourceError("a cassette has at most 1 GiB", file=str(path))
            return _history_of(enumerate(_lines_of(file), 1), str(path))
    except OSError as error:
        raise SourceError(f"cannot read it: {error.strerror}", file=str(path)) from None


def import_run(journal: Journal, history: RunHistory, run: RunId | None = None) -> RunId:
    """Add a run from a file to a journal, under its own id or another.

    Raises: `RunExists`, `StoreError`.
    """
    name = run or history.run
    try:
        claim = journal.begin(replace(history.header, run=name))
    except RunExists as error:
        error.hint = "give it another id: --as NAME"
        raise
    try:
        records = [numbered.record for numbered in history.records]
        for start in range(0, len(records), _BATCH):
            journal.append(name, records[start : start + _BATCH])
    finally:
        claim.release()
    return name


def _hidden(history: RunHistory, texts: list[str]) -> tuple[str, ...]:
    """The names of secrets that have marks in the record."""
    everything = (encode(history.header), *texts)
    marks = {name: secret_mark(name)[:-1] for name in history.header.secrets}
    return tuple(name for name, mark in marks.items() if any(mark in text for text in everything))


_HINT: Final = "`weft runs export RUN FILE` writes such a file"


def _lines_of(file: Any) -> Iterator[str]:
    while line := file.readline(_LONGEST_LINE):
        yield line


def _history_of(lines: Iterator[tuple[int, str]], file: str) -> RunHistory:
    place = 0
    header: RunHeader | None = None
    records: list[NumberedRecord] = []
    try:
        for place, line in lines:
            if place == 1:
                _check_format(json.loads(line), file)
            elif header is None:
                header = _header(line)
            else:
                records.append(_numbered(line))
    except (ValueError, TypeError, RecursionError, StoreError) as error:
        message = error.message if isinstance(error, StoreError) else f"not a cassette: {error}"
        raise SourceError(message, file=file, line=max(1, place), hint=_HINT) from None
    if header is None:
        raise SourceError("it ends too early", file=file, line=place + 1, hint=_HINT)
    return RunHistory(header, records)


def _header(line: str) -> RunHeader:
    header = decode(line)
    if not isinstance(header, RunHeader):
        raise TypeError("it has no header")
    return _without_places(header)


def _without_places(header: RunHeader) -> RunHeader:
    """`header` without the folder: code runs only where the folder is known."""
    settings = {key: value for key, value in header.settings.items() if key not in _PRIVATE}
    return replace(header, settings=settings)


def _check_format(mark: object, file: str) -> None:
    version = mark.get("weft_cassette") if isinstance(mark, dict) else None
    if not isinstance(version, int):
        raise TypeError("its first line says so")
    if version > FORMAT:
        hint = "a newer weft wrote it: update this one"
        raise SourceError(f"format {version} is newer than {FORMAT}", file=file, hint=hint)


def _numbered(line: str) -> NumberedRecord:
    seq, part, text = line.strip().removeprefix("[").removesuffix("]").split(",", 2)
    record = decode(text)
    if not isinstance(record, (Event, CallEvent)):
        raise TypeError(f"{type(record).__name__} is no record")
    return NumberedRecord(int(seq), int(part), record)
