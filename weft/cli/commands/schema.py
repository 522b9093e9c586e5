"""`weft schema`: the JSON Schema of workflow files, for editors."""

from __future__ import annotations

import json

import typer

from weft.cli.errors import report_errors
from weft.cli.options import Debug


def schema(debug: Debug = False) -> None:
    """Print the JSON Schema of workflow files.

    Editors use it to complete and to check. In VS Code, with the YAML extension, begin a file with
    the line: # yaml-language-server: $schema=weft.schema.json
    """
    with report_errors(debug=debug):
        from weft.workflow import json_schema

        typer.echo(json.dumps(json_schema(), indent=2))
