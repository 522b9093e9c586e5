"""`weft gateway`: serves workflows as models behind an OpenAI-compatible API."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.commands.options import Debug, WorkflowFiles
from weft.cli.complaint import complaints
from weft.cli.given import byte_count, seconds
from weft.cli.served_runs import KeptAt, KeptWhen, server_journal, when_kept

if TYPE_CHECKING:
    from weft.workflow.gateway import Keys

HELP = """Serve workflows as models behind an OpenAI-compatible API.

Each workflow is a model of its own name. A chat fills the input `messages`, `prompt` or `question`
(or the only required text); the output `answer` or `text` (or the only one) is the reply. Further
inputs come in the field `inputs` of a request, or have defaults.

Runs are recorded only where --journal or --durability says so; the header x-weft-run of a reply
then says under which id, for `weft runs`, `weft ui`, `weft replay` and the others.

The first Ctrl-C (or SIGTERM) refuses new requests and finishes those under way; the second ends the
process at once.

\b
Exit status:
  0    ended in order
  1    cannot serve: a port that is taken, a model that does not load
  2    wrong usage, or an invalid workflow
  130  ended, but answers were cut off
"""


def gateway(
    files: WorkflowFiles,
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Where to listen; others than loopback need keys."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="The port; 0: any that is free.")] = 8080,
    api_key_env: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Variable that holds the clients' keys, by comma."),
    ] = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with a key a line, readable by you only."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A web page's origin that may use it; repeat it."),
    ] = None,
    max_concurrent: Annotated[
        int, typer.Option(metavar="N", help="At most so many answers at once.", min=1)
    ] = 64,
    max_waiting: Annotated[
        int, typer.Option(metavar="N", help="So many more requests may wait.", min=0)
    ] = 256,
    max_body: Annotated[
        str, typer.Option(metavar="SIZE", help="The largest request, such as 500KB or 4MiB.")
    ] = "4MiB",
    timeout: Annotated[
        str, typer.Option(metavar="TIME", help="The longest answer, such as 30s or 10m.")
    ] = "10m",
    drain: Annotated[
        str, typer.Option(metavar="TIME", help="How long the end waits for answers under way.")
    ] = "30s",
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Also serve a model that a workflow declares, such as one that thinks; repeat it.",
        ),
    ] = None,
    progress: Annotated[
        bool, typer.Option("--progress", help="Stream which nodes have ended, as reasoning.")
    ] = False,
    answers: Annotated[
        bool,
        typer.Option("--answers", help="Let clients answer what recorded runs ask: see the docs."),
    ] = False,
    journal: KeptAt = None,
    durability: KeptWhen = None,
    no_warm: Annotated[
        bool, typer.Option("--no-warm", help="Load models with the first request that needs them.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No line for each request.")] = False,
    debug: Debug = False,
) -> None:
    """See `HELP`."""
    timeout_s, drain_s, most_bytes = (
        seconds(timeout),
        seconds(drain),
        byte_count(max_body, "--max-body"),
    )
    kept = when_kept(journal, durability)
    with complaints(debug=debug):
        from weft.cli.hosting import hosted, request_line
        from weft.workflow import load
        from weft.workflow.gateway import GatewayOptions, WorkflowGateway

        options = GatewayOptions(
            host=host,
            port=port,
            keys=_keys(api_key_env, api_key_file),
            origins=tuple(allow_origin or ()),
            max_concurrent=max_concurrent,
            max_waiting=max_waiting,
            max_body_bytes=most_bytes,
            timeout_s=timeout_s,
            drain_s=drain_s,
        )
        with server_journal(journal, kept, wanted=answers) as opened:
            serving = WorkflowGateway(
                [load(file) for file in files],
                options,
                models=models or (),
                progress=progress,
                report=None if quiet else request_line,
                journal=opened,
                durability=kept,
                answers=answers,
            )
            serving.bind()
            code = asyncio.run(hosted(serving, warm=not no_warm, with_key=options.keys is not None))
    raise typer.Exit(code)


def _keys(variable: str | None, file: Path | None) -> Keys | None:
    from weft.workflow.gateway import Keys

    if variable is not None and file is not None:
        raise typer.BadParameter("give --api-key-env or --api-key-file, not both")
    if file is not None:
        return Keys.from_file(file)
    return None if variable is None else Keys.from_env(variable)
