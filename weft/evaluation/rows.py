"""Rows of data sets: JSONL, CSV, Parquet, a Python function, Hugging Face `datasets`."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from weft.agents.tools.module import find, is_file
from weft.core.errors import BuildError, InputError, SourceError
from weft.core.extras import optional_packages

Row = Mapping[str, Any]
HUGGING_FACE: Final = "hf:"
_HINT: Final = "a data set is a .jsonl, .csv or .parquet file, ./data.py:function, or hf:NAME:SPLIT"


def check_source(source: str, folder: Path) -> None:
    """Raises: `InputError` where `source` names a file that is not there, or of another kind."""
    if not source.startswith(HUGGING_FACE) and _function(source) is None:
        _data_file(source, folder)


def rows_of(source: str, folder: Path) -> list[Row]:
    """All rows of `source`; paths start in `folder`.

    Raises: `SourceError` at a wrong line, `InputError`, `BuildError` for a missing package.
    """
    if source.startswith(HUGGING_FACE):
        return list(_hugging_face(source.removeprefix(HUGGING_FACE)))
    function = _function(source)
    if function is not None:
        return list(_called(*function, folder))
    file = _data_file(source, folder)
    try:
        return list(_READERS[file.suffix.lower()](file))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {file}: {error}") from error


def _function(source: str) -> tuple[str, str] | None:
    """The file or module and the name of a function; None for another source."""
    reference, _, name = source.rpartition(":")
    named = name.isidentifier() and (reference.endswith(".py") or "." in reference)
    return (reference, name) if named else None


def _data_file(source: str, folder: Path) -> Path:
    file = folder / source
    if file.suffix.lower() not in _READERS:
        raise InputError(f"no data set can be read from {source!r}", hint=_HINT)
    if not file.is_file():
        raise InputError(f"there is no file {file}", hint=_HINT)
    return file


def rows_from(values: Iterable[object], what: str) -> Iterator[Row]:
    """`values` as rows. Raises: `InputError` for one that is no mapping."""
    for number, row in enumerate(values, 1):
        if not isinstance(row, Mapping):
            hint = 'such as {"question": "...", "expected": "..."}'
            raise InputError(f"{what}: row {number} is no mapping but {row!r:.80}", hint=hint)
        yield row


def _json_lines(file: Path) -> Iterator[Row]:
    with file.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                why = f"not JSON: {error}"
                raise SourceError(why, file=str(file), line=number, column=1) from None
            if not isinstance(row, dict):
                raise SourceError("not a JSON object", file=str(file), line=number, column=1)
            yield row


def _csv(file: Path) -> Iterator[Row]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.DictReader(lines, strict=True)
        try:
            for row in reader:
                if None in row or None in row.values():
                    why = "it has another number of cells than the header"
                    raise SourceError(why, file=str(file), line=reader.line_num, column=1)
                yield row
        except csv.Error as error:
            raise SourceError(str(error), file=str(file), line=reader.line_num, column=1) from error


def _parquet(file: Path) -> Iterator[Row]:
    with optional_packages("Parquet files"):
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    try:
        with ParquetFile(file) as table:
            for batch in table.iter_batches():
                yield from batch.to_pylist()
    except ArrowException as error:
        raise InputError(f"cannot read {file}: {error}") from error


_READERS: Final = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".csv": _csv,
    ".parquet": _parquet,
}


def _called(reference: str, name: str, folder: Path) -> Iterator[Row]:
    source = str((folder / reference).resolve()) if is_file(reference) else reference
    try:
        function = find(f"{source}:{name}")
    except AttributeError as error:
        raise InputError(f"{reference} has no {name}", hint=_HINT) from error
    if not callable(function):
        raise InputError(f"{reference}:{name} is no function", hint=_HINT)
    return called_rows(function, f"{reference}:{name}")


def called_rows(function: Any, what: str) -> Iterator[Row]:
    """The rows that a function returns. Raises: `InputError`, also where it raises."""
    try:
        values = list(function())
    except BuildError:
        raise
    except Exception as error:
        raise InputError(f"{what} raised {type(error).__name__}: {error}") from error
    return rows_from((getattr(value, "data", value) for value in values), what)


def _hugging_face(text: str) -> Iterator[Row]:
    name, _, split = text.rpartition(":")
    name, split = (name, split) if name else (text, "test")
    with optional_packages("data sets of Hugging Face"):
        import datasets
    try:
        loaded = datasets.load_dataset(name, split=split)
    except Exception as error:  # its errors have no common class
        raise InputError(f"cannot load {name}, split {split}: {error}") from error
    return rows_from(loaded, text)
