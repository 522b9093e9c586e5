"""`weft stop`: stops model servers, and returns when they are gone."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.options import Debug
from weft.cli.text import clean


def stop(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="ID|NAME", help="What `weft ps` shows.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every server of yours.")] = False,
    now: Annotated[bool, typer.Option("--now", help="Do not wait for requests in flight.")] = False,
    debug: Debug = False,
) -> None:
    """Stop model servers.

    Returns when no process of them is left. Requests in flight may finish unless --now is given.
    """
    if bool(names) == everything:
        raise typer.BadParameter("name servers as `weft ps` shows them, or give --all")
    with report_errors(debug=debug):
        from weft.serving.vllm import serve as serving

        entries = serving.servings() if everything else serving.chosen(names or [])
        if not entries:
            typer.echo("no model server runs")
        for entry in entries:
            serving.stop(entry, now=now)
            typer.echo(f"{clean(entry.id)} is gone")
