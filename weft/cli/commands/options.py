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
