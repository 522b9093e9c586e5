"""`weft plan-serve`: ranks the deployments of a model on given GPUs, without using them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from weft.cli.errors import report_errors
from weft.cli.options import Debug, Json

Goal = Literal["throughput", "latency", "cost"]


def plan_serve(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="A folder with a config.json, a model here, or a known shape."
        ),
    ],
    gpu: Annotated[str, typer.Option("--gpu", metavar="NAME:COUNT", help="As in h200:8.")],
    traffic: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Requests as JSON lines, or statistics.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    goal: Annotated[Goal, typer.Option(help="What the best plan is best at.")] = "throughput",
    quantization: Annotated[
        list[str] | None,
        typer.Option(metavar="FORMAT", help="Only this number format: bf16, fp8 or int4."),
    ] = None,
    max_seqs: Annotated[
        int | None, typer.Option(min=1, help="Most sequences in a pass; else vLLM's default.")
    ] = None,
    max_batched_tokens: Annotated[
        int | None, typer.Option(min=1, help="Most tokens in a pass; else vLLM's default.")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="How many plans to show.")] = 12,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Rank the ways to serve a model on GPUs.

    Memory, latency and throughput of each are predicted from the model's config, the traffic and
    data sheets: no weights are loaded, and no GPU is needed.
    """
    with report_errors(debug=debug, as_json=as_json):
        from weft.cli.console import stdout
        from weft.cli.plan_table import document, print_plans
        from weft.serving.plan.deployment import plan_serve as make

        deployment = make(
            model,
            gpu,
            traffic,
            goal=goal,
            quantizations=quantization or (),
            max_seqs=max_seqs,
            max_batched_tokens=max_batched_tokens,
        )
        if as_json:
            typer.echo(json.dumps(document(deployment), indent=1))
        else:
            print_plans(stdout(), deployment, rows)
        if not deployment.ranking.plans:
            raise typer.Exit(1)
