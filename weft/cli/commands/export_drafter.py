"""`weft export-drafter`: writes a trained drafter in the format that vLLM loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.options import AsJson, Debug
from weft.cli.text import clean
from weft.cli.train_options import model_folder
from weft.core.extras import optional_packages

HELP = """Write a drafter that `weft train-drafter` made in the format that vLLM loads.

vLLM computes the published form only: train with --set form=2.

\b
  weft train-drafter eagle --model MODEL --data FILE --out head/ --set form=2
  weft export-drafter head/ --model MODEL --out for-vllm/
  weft serve MODEL --decode eagle3:for-vllm/

Exit status: 0 when it is written, 2 when vLLM could not load it.
"""


def export_drafter(
    drafter: Annotated[Path, typer.Argument(metavar="FOLDER", help="The trained drafter.")],
    model: Annotated[
        str,
        typer.Option("--model", "-m", metavar="MODEL", help="Its model: a name, or a folder."),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The new folder.")],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """See `HELP`."""
    with report_errors(debug=debug, as_json=as_json):
        with optional_packages("local"):
            from weft.decoding.network.network import Network
            from weft.decoding.network.options import NetworkOptions
            from weft.training.drafters.export import export_drafter as export

        options = NetworkOptions(dtype="float32", quantization="none")
        written = export(drafter, Network.load(model_folder(model), options), out)
        if as_json:
            told = {"kind": written.kind, "folder": str(written.folder), "decode": written.decode}
            typer.echo(json.dumps(told))
        else:
            typer.echo(f"{clean(str(written.folder))}: weft serve MODEL --decode {written.decode}")
