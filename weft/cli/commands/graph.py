"""`weft graph`: draws a workflow as Mermaid text, SVG or PNG."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.files import writing
from weft.cli.options import Debug, WorkflowFile

if TYPE_CHECKING:
    from weft.workflow import Flow

_FORMATS = (".mmd", ".svg", ".png")


def graph(
    file: WorkflowFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write: .mmd, .svg or .png.",
            dir_okay=False,
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Draw a workflow's graph. Without --output, Mermaid text goes to stdout."""
    if output is not None and output.suffix.lower() not in _FORMATS:
        raise typer.BadParameter(
            f"the name must end in {', '.join(_FORMATS)}", param_hint="--output"
        )
    with report_errors(debug=debug):
        from weft.workflow import load

        flow = load(file)
        if output is None:
            typer.echo(flow.mermaid())
            return
        content = _drawn(flow, output.suffix.lower())
        with writing(output):
            output.write_bytes(content)
        typer.echo(f"wrote {output}")


def _drawn(flow: Flow, suffix: str) -> bytes:
    if suffix == ".mmd":
        return flow.mermaid().encode()
    from weft.cli.drawing.graph import draw_graph

    drawing = draw_graph(flow.graph_view())
    if suffix == ".svg":
        from weft.cli.drawing.svg import svg

        return svg(drawing, flow.name).encode()
    from weft.cli.drawing.png import png

    return png(drawing)
