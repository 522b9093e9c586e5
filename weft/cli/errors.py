"""Exit statuses, and the printing of errors: what, where (with the source line), what to do.

The statuses are part of the command line's interface.
"""

from __future__ import annotations

import shlex
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from weft.cli.exit_code import ExitCode
from weft.cli.text import clean, json_text
from weft.core.errors import BuildError, InternalError, SourceError, SpecError, WeftError
from weft.core.extras import extra_with, missing
from weft.core.redaction import know_secrets

MEANINGS = {
    ExitCode.SUCCEEDED: "succeeded",
    ExitCode.FAILED: "failed",
    ExitCode.INVALID: "wrong usage, or an invalid workflow or input",
    ExitCode.PARTIAL: "partial result: some nodes failed, were cut off or ran out of budget",
    ExitCode.UNANSWERED: "waits for an answer that nobody can give here (see --answer)",
    ExitCode.SUSPENDED: "suspended: its journal could not be written to (`weft resume` goes on)",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C or SIGTERM",
}


def statuses(codes: Iterable[ExitCode] = MEANINGS) -> str:
    """The meanings of exit statuses, as lines of a help text."""
    return "\n".join(f"  {code:<5d}{MEANINGS[code]}" for code in codes)


def code_of(error: WeftError) -> ExitCode:
    """The exit status of a command that ends with `error`."""
    return ExitCode.INVALID if isinstance(error, (BuildError, SpecError)) else ExitCode.FAILED


_LONGEST_SOURCE_LINE = 160


@contextmanager
def report_errors(
    *, debug: bool, as_json: bool = False, file: Path | None = None
) -> Iterator[None]:
    """Print errors and set the exit status; with `debug` after a traceback.

    Secrets of this process are redacted. `as_json` also prints the error as the one JSON document
    on stdout. Of several mistakes in the workflow `file` the first is printed, and how many others
    `weft check` prints.
    """
    know_secrets()
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except Exception as raised:  # noqa: BLE001 - every error is reported
        if debug:
            print_traceback(raised)
        error = _as_weft_error(raised)
        print_error(error, as_json)
        _print_others(error, file)
        raise typer.Exit(code_of(error)) from None


def print_traceback(error: BaseException) -> None:
    """Print the traceback to stderr, with those of its causes; without secrets or sequences."""
    sys.stderr.write(clean("".join(traceback.format_exception(error))))


def _as_weft_error(raised: Exception) -> WeftError:
    """The error itself, out of its task groups; any other exception as a bug of weft."""
    while isinstance(raised, ExceptionGroup) and len(raised.exceptions) == 1:
        raised = raised.exceptions[0]
    if isinstance(raised, WeftError):
        return raised
    if isinstance(raised, ModuleNotFoundError) and extra_with(str(raised.name).partition(".")[0]):
        return missing(raised, "this")
    text = f"{type(raised).__name__}: {raised} (--debug shows where it comes from)"
    return InternalError(text)


def print_error(error: WeftError, as_json: bool = False) -> None:
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


def _print_others(error: WeftError, file: Path | None) -> None:
    if not isinstance(error, BuildError) or not error.others:
        return
    from weft.cli.console import stderr

    place = file or (error.file if isinstance(error, SourceError) else "FILE")
    more = f"and {len(error.others)} more: weft check {shlex.quote(str(place))}"
    stderr().print(clean(more), soft_wrap=True)


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
    """The position, its line and a caret under the column; only the position if unreadable."""
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
