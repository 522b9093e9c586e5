"""`weft doctor`: what is installed, what works, and how to fix the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.exit_code import ExitCode
from weft.cli.options import Debug
from weft.cli.text import clean

if TYPE_CHECKING:
    from rich.console import Console

    from weft.serving.doctor import Check

_WIDTH = len("extra providers") + 2
_STYLES = {"ok": "green", "missing": "yellow", "broken": "bold red"}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    debug: Debug = False,
) -> None:
    """Check the installation: engines, GPUs, models, folders.

    Exit status 0 if something here can run a model, else 1.
    """
    with report_errors(debug=debug, as_json=as_json):
        from weft.cli.console import stdout
        from weft.serving.doctor import examine

        checks = list(examine()) if as_json else _show(stdout(), examine())
        fit = any(check.serves and check.status == "ok" for check in checks)
        if as_json:
            findings = [asdict(check) for check in checks]
            typer.echo(json.dumps({"can_serve": fit, "checks": findings}))
        elif not fit:
            typer.echo("Nothing here can run a model yet.")
        if not fit:
            raise typer.Exit(ExitCode.FAILED)


def _show(console: Console, checks: Iterable[Check]) -> list[Check]:
    """Print each finding as soon as it is known, with advice below it."""
    from rich.text import Text

    shown = []
    for check in checks:
        line = Text(f"{check.name:<{_WIDTH}}").append(f"{check.status:<9}", _STYLES[check.status])
        console.print(line.append(clean(check.found)), soft_wrap=True)
        if check.status != "ok" and check.advice:
            console.print(f"{'':<{_WIDTH}}→ {clean(check.advice)}", soft_wrap=True)
        shown.append(check)
    return shown
