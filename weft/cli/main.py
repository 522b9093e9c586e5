"""The command line, put together. Knows the commands' names; each lives in its own file."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.commands.version import show_version
from weft.cli.lazy import application, lazy_group

app = application(
    name="weft",
    help="Run parallel LLM programs: graphs of tool calls, model calls and people.",
    no_args_is_help=True,
    cls=lazy_group(
        *("run", "resume", "answer", "replay", "diff", "simulate"),
        *("ask", "think"),
        *("serve", "ps", "stop", "gateway", "mcp", "ui", "plan-serve"),
        *("train-drafter", "train-diffusion"),
        *("check", "decoders", "doctor", "graph", "init", "schema", "version"),
        *("model", "runs"),
    ),
)


@app.callback()
def main(
    show: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True, callback=show_version),
    ] = False,
) -> None:
    """Options before the command."""
