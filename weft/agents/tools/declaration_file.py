"""Reads declarations of tools from a JSON or JSON-lines file, without interpreting them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from weft.core.errors import InputError

MOST_BYTES: Final = 256 * 2**20
_LISTS: Final = ("tools", "functions")
_HINT: Final = "give a JSON array or JSON lines"


def read_declarations(path: Path) -> list[Any]:
    """The values of a JSON array, of `{"tools": [...]}`, or of JSON lines, in order.

    Raises: `InputError` for a file that cannot be read, has more than 256 MB, or is no JSON; with
    the line where that is known.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} has more than {MOST_BYTES:,} bytes", hint="split the file")
        text = path.read_text("utf-8-sig")
        try:
            whole = json.loads(text)
        except json.JSONDecodeError as error:
            if not error.msg.startswith("Extra data"):
                raise
            return [
                _line(path, *each) for each in enumerate(text.split("\n"), 1) if each[1].strip()
            ]
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read tools from {path}: {error}", hint=_HINT) from None
    return _listed(whole)


def _line(path: Path, number: int, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"cannot read tools from {path}, line {number}: {error}", hint=_HINT
        ) from None


def _listed(whole: Any) -> list[Any]:
    if isinstance(whole, list):
        return whole
    if isinstance(whole, Mapping):
        for name in _LISTS:
            if isinstance(whole.get(name), list):
                return list(whole[name])
    return [whole]
