"""`weft model`: fetches model weights to this machine, and lists them."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.options import Debug
from weft.cli.text import clean

model = typer.Typer(
    help="Language models on this machine.", no_args_is_help=True, rich_markup_mode=None
)


@model.command()
def pull(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A name that `weft model list` shows.")
    ],
    debug: Debug = False,
) -> None:
    """Fetch a model's weights once, check them, and keep them in your cache."""
    with report_errors(debug=debug):
        from weft.cli.console import stderr
        from weft.cli.progress_bars import DownloadProgress
        from weft.serving.weights import pull as fetch

        console = stderr()

        def say(why: str) -> None:
            console.print(clean(why), soft_wrap=True)

        with DownloadProgress(console) as progress:
            folder = fetch(name, progress=progress, switched=say)
        typer.echo(f"{clean(name)} is in {folder}")


@model.command("list")
def list_models(debug: Debug = False) -> None:
    """List the models that can be fetched, those that are here, and those that weft brings."""
    with report_errors(debug=debug):
        from weft.serving.weights import CATALOGUE, installed, missing_weights, shipped_models

        here = {each.name: each for each in installed()}
        for name, entry in sorted(CATALOGUE.items()):
            size = f"{here[name].size / 1e6:,.0f} MB here" if name in here else "not fetched"
            typer.echo(f"{name:<26}  {size:<14}  {entry.title} ({entry.licence})")
        for name in sorted(here.keys() - CATALOGUE.keys()):
            model_here = here[name]
            size = f"{model_here.size / 1e6:,.0f} MB here"
            typer.echo(f"{clean(name):<26}  {size:<14}  {clean(model_here.source)}")
        for own in shipped_models():
            size = f"{own.size / 1e6:,.0f} MB here"
            kind = "a diffusion model" if own.diffuses else "a model that writes token by token"
            kind = "a planner for `weft ask`" if own.plans else kind
            typer.echo(f"{own.name:<26}  {size:<14}  {kind}, comes with weft")
        if remark := missing_weights():
            typer.echo(remark)
