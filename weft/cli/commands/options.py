"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

WorkflowFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="The workflow, a YAML file.", exists=True, dir_okay=False),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback when something fails.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")
]
EventsFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write every event, a JSON object a line.", dir_okay=False),
]
TimelineFile = Annotated[
    Path | None,
    typer.Option(metavar="HTML", help="Write a page with the run's Gantt chart.", dir_okay=False),
]
Deadline = Annotated[
    str | None, typer.Option(metavar="TIME", help="End the run then, such as 500ms, 30s or 2m.")
]
