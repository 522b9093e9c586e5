"""`weft mcp`: serves workflows as tools of an MCP server."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.journal import RecordDurability, RecordJournal, recording_durability, server_journal
from weft.cli.options import Debug, WorkflowFiles

if TYPE_CHECKING:
    from weft.core.ports.journal import Journal
    from weft.workflow.apps.mcp_server import WorkflowMcpServer
    from weft.workflow.document.spec.settings import Durability

HELP = """Serve workflows as tools over the Model Context Protocol.

Each workflow is a tool of its own name: its inputs are the arguments, its outputs the result. Nodes
that end are progress; a call that is cancelled ends its run.

It talks over stdin and stdout, and ends when stdin is closed: give this command to the program that
is to use the tools. With --http it listens on this machine instead.

Runs are recorded only where --journal or --durability says so; `weft/run` in the metadata of a
result then says under which id, for `weft runs`, `weft ui`, `weft replay` and the others.

\b
Exit status:
  0    ended in order
  1    cannot serve: a port that is taken, say
  2    wrong usage, or an invalid workflow
  130  ended by Ctrl-C or SIGTERM; calls under way were cut off
"""


def mcp(
    files: WorkflowFiles,
    http: Annotated[
        bool, typer.Option("--http", help="Listen on this machine, at /mcp of the port.")
    ] = False,
    port: Annotated[
        int,
        typer.Option(
            metavar="N", help="The port for --http; 0: any that is free.", min=0, max=65535
        ),
    ] = 8090,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A web page's origin that may use --http; repeat it."),
    ] = None,
    max_concurrent: Annotated[
        int, typer.Option(metavar="N", help="At most so many runs at once.", min=1)
    ] = 16,
    journal: RecordJournal = None,
    durability: RecordDurability = None,
    debug: Debug = False,
) -> None:
    """See `HELP`."""
    when = recording_durability(journal, durability)
    with report_errors(debug=debug):
        from weft.cli.console import stdout_reserved

        with server_journal(journal, when) as opened:
            with stdout_reserved():  # importing workflows' tools may print, and clients read stdout
                server = _server(files, max_concurrent, opened, when)
            code = asyncio.run(_served(server, port if http else None, allow_origin or []))
    raise typer.Exit(code)


def _server(
    files: list[Path], max_concurrent: int, journal: Journal | None, durability: Durability | None
) -> WorkflowMcpServer:
    from weft.workflow import load
    from weft.workflow.apps.mcp_server import WorkflowMcpServer

    flows = [load(file) for file in files]
    return WorkflowMcpServer(
        flows, max_concurrent=max_concurrent, journal=journal, durability=durability
    )


async def _served(server: WorkflowMcpServer, port: int | None, origins: list[str]) -> int:
    """Serve until the client leaves, or a signal comes."""
    from weft.cli.console import interrupts, leave_at_once
    from weft.cli.exit_code import ExitCode
    from weft.workflow.apps.mcp_server import LoopbackServer

    hosted = None if port is None else LoopbackServer("127.0.0.1", port)
    stopped = asyncio.Event()
    if hosted is None:
        serving = asyncio.create_task(server.serve_stdio())
    else:
        welcome = partial(typer.echo, f"listening on {hosted.address}/mcp")
        serving = asyncio.create_task(server.serve_http(hosted, welcome, origins=origins))
    with interrupts(stopped.set):
        stopping = asyncio.create_task(stopped.wait())
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
        if stopped.is_set():
            await server.aclose()
            if hosted is not None:
                hosted.stop()
                await asyncio.wait({serving})
            leave_at_once(ExitCode.INTERRUPTED)  # a thread may wait for stdin for ever
        stopping.cancel()
        serving.result()
    return ExitCode.SUCCEEDED
