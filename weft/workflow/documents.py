"""Texts that a question is about, as people give them: in a workflow, or as files. Asks nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.core.errors import InputError
from weft.reasoning.question import Document

_MOST_BYTES = 64 * 2**20
_HINT = "a list of texts or of {name, text}, or a mapping of names to texts"


def documents_of(value: Any) -> tuple[Document, ...]:
    """The documents in a value: a text, a list of texts or of {name, text}, or texts by name.

    Those without a name are called d1, d2, ... Raises: `InputError` for anything else.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        return (Document("d1", value),)
    if isinstance(value, Mapping) and not _is_document(value):
        return tuple(_document({"name": name, "text": text}, "") for name, text in value.items())
    items = [value] if isinstance(value, Mapping) else value
    if not isinstance(items, (list, tuple)):
        raise InputError(f"documents cannot be made of {value!r:.60}", hint=_HINT)
    return tuple(_document(item, f"d{number}") for number, item in enumerate(items, 1))


def read_documents(paths: Sequence[Path]) -> tuple[Document, ...]:
    """The documents in text files, called as the files are; by their paths where names are equal.

    Raises: `InputError`.
    """
    names = [path.name for path in paths]
    return tuple(
        Document(path.name if names.count(path.name) == 1 else str(path), _read(path))
        for path in paths
    )


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            hint = f"a document has at most {_MOST_BYTES // 2**20} MiB"
            raise InputError(f"{path} is too large", hint=hint)
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None


def _is_document(value: Mapping[str, Any]) -> bool:
    return "text" in value and set(value) <= {"name", "text"}


def _document(item: Any, name: str) -> Document:
    if isinstance(item, str):
        return Document(name, item)
    if isinstance(item, Mapping) and isinstance(item.get("text"), str):
        return Document(str(item.get("name", name)), item["text"])
    raise InputError(f"a document is a text, not {item!r:.60}", hint=_HINT)
