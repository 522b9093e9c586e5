"""What the command line gives a run: inputs as `name=text` or a JSON file, durations, answers."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import typer

from weft.core.errors import InputError, SourceError

_RUN_NAME = re.compile(r"\w[\w.:-]{0,99}")


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """`["k=v"]` as `{"k": "v"}`. Only the first `=` counts. The last of equal names wins.

    Raises: `typer.BadParameter` for a text without a name and `=`.
    """
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"expected NAME=VALUE, got {text!r}", param_hint=option)
        found[name.strip()] = value
    return found


def inputs_file(path: Path) -> dict[str, object]:
    """The JSON object in the file. Raises: `SourceError` at the place where it is wrong."""
    return _object(_content(path), str(path))


def json_object(given: str, option: str) -> dict[str, object]:
    """The JSON object that is `given`, or is in the file of that name.

    Raises: `SourceError` at the place where it is wrong, `typer.BadParameter` without such a file.
    """
    if given.lstrip().startswith("{"):
        return _object(given, option)
    if not Path(given).is_file():
        said = f"expected a JSON object or the name of a file that has one, got {given!r}"
        raise typer.BadParameter(said, param_hint=option)
    return inputs_file(Path(given))


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None


def _object(text: str, where: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise SourceError(
            f"not JSON: {error.msg}", file=where, line=error.lineno, column=error.colno
        ) from None
    except RecursionError:
        raise SourceError("nested too deeply", file=where) from None
    if not isinstance(found, dict):
        hint = 'such as {"question": "why?"}'
        raise SourceError("expected a JSON object", file=where, hint=hint)
    return found


def loose_value(text: str) -> object:
    """`text` as JSON where it is JSON, such as a number or true; else as it is."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found


def token_count(text: str) -> int:
    """The tokens of `20000`, `20000tok` or `20ktok`; at least 1. Raises: `typer.BadParameter`."""
    from weft.workflow.document.quantity import parse_tokens

    try:
        found = parse_tokens(int(text) if text.isdigit() else text)
    except ValueError:
        found = 0
    if found < 1:
        raise typer.BadParameter(f"expected tokens such as 20000tok, got {text!r}")
    return found


def byte_count(text: str, option: str) -> int:
    """The bytes of `500KB`, `4MiB` or a bare number. Raises: `typer.BadParameter`."""
    from weft.workflow.document.quantity import parse_size

    try:
        return parse_size(int(text) if text.isdigit() else text)
    except ValueError as error:
        raise typer.BadParameter(f"{error}, got {text!r}", param_hint=option) from None


def run_name(text: str | None) -> str | None:
    """An id for a new run: one word, and not `last`. Raises: `typer.BadParameter`."""
    if text is None:
        return None
    if not _RUN_NAME.fullmatch(text) or text == "last":
        said = f"expected letters, digits and . _ - such as monday-2, not `last`, got {text!r}"
        raise typer.BadParameter(said)
    return text


def seconds(text: str) -> float:
    """The seconds of `500ms`, `30s`, `2m`, `1h`, `7d` or a bare number; more than 0.

    Raises: `typer.BadParameter`.
    """
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    number = text.strip().rstrip("mhsd")
    unit = text.strip()[len(number) :]
    try:
        found = float(number) * units[unit or "s"]
    except (ValueError, KeyError):
        found = 0.0
    if not 0 < found < float("inf"):
        raise typer.BadParameter(f"expected a duration such as 500ms, 30s or 2m, got {text!r}")
    return found
