"""`weft check`: finds defects of workflows without running them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.errors import print_error, report_errors
from weft.cli.exit_code import ExitCode
from weft.cli.options import Debug, OnCluster, WorkflowFiles, placement
from weft.cli.text import amount, clean
from weft.core.errors import BuildError, WeftError

if TYPE_CHECKING:
    from weft.workflow import Flow


def check(
    files: WorkflowFiles,
    connect: Annotated[
        bool,
        typer.Option("--connect", help="Start the servers that tools come from, and ask them."),
    ] = False,
    on: OnCluster = None,
    debug: Debug = False,
) -> None:
    """Check workflows: syntax, references, types, tools. Nothing runs, no model is called.

    It notes which environment variables of keys are not set here.

    Exit status: 0 when all are right, 2 when one is not.
    """
    wrong = 0
    with report_errors(debug=debug):
        from weft.workflow import check as check_file
        from weft.workflow.runtime.models.factory import unset_keys

        place = placement(on)
        for file in files:
            try:
                flow = check_file(file, place)
                _check_measured(flow)
                notes = asyncio.run(flow.check_connected()) if connect else ()
            except WeftError as error:
                if debug:
                    raise
                for defect in error.defects if isinstance(error, BuildError) else (error,):
                    print_error(defect)
                wrong += 1
            else:
                typer.echo(f"{clean(str(file))}: ok, {amount(len(flow.nodes), 'node')}")
                for note in (*unset_keys(flow.unit), *notes):
                    typer.echo(f"  {clean(note)}")
                for node, others in flow.alternatives.items():
                    typer.echo(f"  {clean(node)}: or {', '.join(map(clean, others))}")
    if wrong:
        raise typer.Exit(ExitCode.INVALID)


def _check_measured(flow: Flow[Any, Any, ...]) -> None:
    """Check what only evaluations and studies use."""
    if flow.unit.document.evaluation is not None:
        from weft.evaluation.check import check_evaluation_files

        check_evaluation_files(flow.unit)
    if flow.unit.document.optimise is not None:
        from weft.optimisation.paths import check_choices

        check_choices(flow)
