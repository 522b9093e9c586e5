"""`weft decoders`: lists the decoders of models in this process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from weft.cli.errors import report_errors
from weft.cli.options import AsJson, Debug

if TYPE_CHECKING:
    from weft.workflow.runtime.models.decoders import Decoder


def decoders(as_json: AsJson = False, debug: Debug = False) -> None:
    """List the decoders of models in this process.

    A node of a workflow names one as `decode: NAME`. A lossless one writes the very tokens of plain
    decoding, at any temperature; a lossy one may write others. Diffusion models have decoders of
    their own. Decoders of vLLM are another list: see `weft serve --decode`.
    """
    with report_errors(debug=debug, as_json=as_json):
        from weft.workflow.runtime.models.decoders import decoders as all_decoders

        listed = list(all_decoders())
        if as_json:
            typer.echo(json.dumps([asdict(each) for each in listed]))
            return
        _table([each for each in listed if each.kind == "autoregressive"])
        typer.echo("\nOf diffusion models:")
        _diffusion_table([each for each in listed if each.kind == "diffusion"])


def _table(listed: list[Decoder]) -> None:
    rows = []
    for each in listed:
        published = "" if each.published is None else f"{each.published:.2f}, {each.where}"
        text = "the same" if each.lossless else "may differ"
        rows.append((each.name, text, each.summary, each.needs, published))
    _print(("text", "what it does", "needs", "published tokens a pass"), rows)


def _diffusion_table(listed: list[Decoder]) -> None:
    rows = []
    for each in listed:
        text = "plain" if each.lossless else "may differ"
        rows.append((each.name, text, each.summary, each.needs, ", ".join(each.options)))
    _print(("text", "what it does", "needs", "options"), rows)


def _print(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    from rich.table import Table

    from weft.cli.console import stdout

    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    stdout().print(table)
