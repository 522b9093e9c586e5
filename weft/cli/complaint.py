"""How an error looks to a person: what, where (with the source line), and what to do about it."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from weft.cli.exit_codes import ExitCode, code_of
from weft.cli.text import clean
from weft.cli.values import json_text
from weft.core.errors import InternalError, SourceError, WeftError
from weft.core.extras import extra_with, missing
from weft.core.secrets import hidden, know_secrets

_LONGEST_SOURCE_LINE = 160


@contextmanager
def complaints(*, debug: bool, as_json: bool = False) -> Iterator[None]:
    """Turn errors into a message and an exit status; with `debug` a traceback goes before it.

    No secret of this process is in any of it. `as_json` also prints the error as the one JSON
    document on stdout.
    """
    know_secrets()
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except Exception as raised:  # noqa: BLE001 - whatever it is, a person is told
        if debug:
            sys.stderr.write(hidden("".join(traceback.format_exception(raised))))
        error = _told(raised)
        complain(error, as_json)
        raise typer.Exit(code_of(error)) from None


def _told(raised: Exception) -> WeftError:
    """The error itself, out of the task groups around it; any other exception as our bug."""
    while isinstance(raised, ExceptionGroup) and len(raised.exceptions) == 1:
        raised = raised.exceptions[0]
    if isinstance(raised, WeftError):
        return raised
    if isinstance(raised, ModuleNotFoundError) and extra_with(str(raised.name).partition(".")[0]):
        return missing(raised, "this")
    text = f"{type(raised).__name__}: {raised} (--debug shows where it comes from)"
    return InternalError(text)


def complain(error: WeftError, as_json: bool = False) -> None:
    """Print the error to stderr; with `as_json` also as a JSON document to stdout."""
    from weft.cli.console import stderr

    console = stderr()
    console.print("error: ", style="bold red", end="")
    where = f"{error.node}: " if error.node else ""
    console.print(clean(where + error.message), soft_wrap=True)
    if isinstance(error, SourceError):
        for line in _excerpt(error):
            console.print(line, style="dim", soft_wrap=True)
    if error.hint:
        console.print("hint: ", style="bold cyan", end="")
        console.print(clean(error.hint), soft_wrap=True)
    if as_json:
        sys.stdout.write(json_text(_document(error)) + "\n")


def _document(error: WeftError) -> dict[str, object]:
    invalid = code_of(error) is ExitCode.INVALID
    details: dict[str, object] = {
        "error": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "node": error.node,
    }
    if isinstance(error, SourceError):
        details |= {"file": error.file, "line": error.line, "column": error.column}
    return {"status": "invalid" if invalid else "failed", "error": details}


def _excerpt(error: SourceError) -> list[str]:
    """The place, the line it names and a caret under the column; only the place if unreadable."""
    place = f"  --> {clean(error.file)}:{error.line}:{error.column}"
    try:
        with Path(error.file).open(encoding="utf-8", errors="replace") as source:
            line = next((text for n, text in enumerate(source, 1) if n == error.line), "")
    except OSError:
        return [place]
    text = line.rstrip("\n").expandtabs(1)
    if not text.strip() or error.column > _LONGEST_SOURCE_LINE:
        return [place]
    shown = clean(text)[:_LONGEST_SOURCE_LINE]
    number = str(error.line)
    gutter = " " * len(number)
    return [
        place,
        f" {gutter} |",
        f" {number} | {shown}",
        f" {gutter} | {' ' * min(error.column - 1, len(shown))}^",
    ]
