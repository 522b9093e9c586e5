"""`weft ps`: lists this user's model servers on this machine."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import typer

from weft.cli.errors import report_errors
from weft.cli.options import Debug, Json
from weft.cli.text import clean, duration

if TYPE_CHECKING:
    from weft.serving.vllm.supervise.registry import ServingEntry


def ps(
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List the model servers that run.

    What servers left behind whose weft was killed is ended on the way.
    """
    with report_errors(debug=debug, as_json=as_json):
        from weft.serving.vllm.serve import servings

        running = servings()
        if as_json:
            typer.echo(json.dumps([_data(entry) for entry in running]))
        elif running:
            _table(running)
        else:
            typer.echo("no model server runs; `weft serve MODEL` starts one")


def _table(entries: list[ServingEntry]) -> None:
    from rich.table import Table

    from weft.cli.console import stdout

    table = Table(box=None, pad_edge=False)
    for column in ("id", "model", "status", "url", "ranks", "up"):
        table.add_column(column, overflow="fold", no_wrap=column == "id")
    table.add_column("restarts", justify="right")
    for entry in entries:
        status = f"{entry.status}: {entry.stage}" if entry.status == "starting" else entry.status
        table.add_row(
            entry.id,
            clean(entry.name),
            clean(status),
            "\n".join(entry.urls),
            _ranks(entry),
            duration(max(0.0, time.time() - entry.started_at)),
            str(entry.restarts),
        )
    stdout().print(table)


def _ranks(entry: ServingEntry) -> str:
    """`1`, `tp 2`, `2 x tp 2 pp 2`."""
    spec = entry.spec
    cuts = " ".join(f"{name} {n}" for name in ("tp", "pp", "dp") if (n := getattr(spec, name)) > 1)
    return f"{spec.replicas} x {cuts or 1}" if spec.replicas > 1 else cuts or "1"


def _data(entry: ServingEntry) -> dict[str, object]:
    return {
        "id": entry.id,
        "name": entry.name,
        "model": entry.spec.model,
        "status": entry.status,
        "stage": entry.stage,
        "urls": list(entry.urls),
        "ranks": entry.spec.ranks * entry.spec.replicas,
        "restarts": entry.restarts,
        "started_at": entry.started_at,
        "on_demand": entry.keep_alive_s is not None,
        "supervisor": entry.supervisor.pid,
        "replicas": [
            {
                "url": replica.url,
                "status": replica.status,
                "restarts": replica.restarts,
                "engine": replica.engine,
                "log": replica.log,
            }
            for replica in entry.replicas
        ],
    }
