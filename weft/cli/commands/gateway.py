"""`weft gateway`: serves workflows as models behind an OpenAI-compatible API."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import console
from weft.cli.console import interrupts, leave_at_once
from weft.cli.errors import report_errors
from weft.cli.exit_code import ExitCode
from weft.cli.journal import RecordDurability, RecordJournal, recording_durability, server_journal
from weft.cli.options import Debug, WorkflowFiles, byte_count, seconds
from weft.cli.text import clean, duration, one_line

if TYPE_CHECKING:
    from weft.workflow.apps.flow_model import FlowModel
    from weft.workflow.apps.gateway import GatewayExchange, GatewayKeys, WorkflowGateway


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
    submissions: Annotated[
        bool,
        typer.Option("--submissions", help="Let clients submit runs to the journal's queue."),
    ] = False,
    worker: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Also execute so many queued runs at once, and continue those of a gateway that "
            "died.",
            min=0,
        ),
    ] = 0,
    lease: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="On a server: how long after this gateway's death its runs wait for another one.",
        ),
    ] = "20s",
    journal: RecordJournal = None,
    durability: RecordDurability = None,
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
    when = recording_durability(journal, durability)
    wanted, lease_s = answers or submissions or bool(worker), seconds(lease)
    with report_errors(debug=debug):
        from weft.workflow import load
        from weft.workflow.apps.gateway import GatewayOptions, WorkflowGateway

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
        with server_journal(journal, when, wanted=wanted, lease_s=lease_s) as opened:
            serving = WorkflowGateway(
                [load(file) for file in files],
                options,
                models=models or (),
                progress=progress,
                report=None if quiet else request_line,
                journal=opened,
                durability=when,
                answers=answers,
                submissions=submissions,
                worker=worker,
            )
            serving.bind()
            code = asyncio.run(
                serve_until_signal(
                    serving,
                    warm=not no_warm,
                    with_key=options.keys is not None,
                    submissions=submissions,
                )
            )
    raise typer.Exit(code)


def _keys(variable: str | None, file: Path | None) -> GatewayKeys | None:
    from weft.workflow.apps.gateway import GatewayKeys

    if variable is not None and file is not None:
        raise typer.BadParameter("give --api-key-env or --api-key-file, not both")
    if file is not None:
        return GatewayKeys.from_file(file)
    return None if variable is None else GatewayKeys.from_env(variable)


_LONGEST_ERROR = 400


async def serve_until_signal(
    gateway: WorkflowGateway, *, warm: bool, with_key: bool, submissions: bool
) -> ExitCode:
    """Serve until a signal comes. Raises: `ServeError`, and errors of loading models."""
    screen = console.stderr()
    interrupted = False

    def stop() -> None:
        nonlocal interrupted
        interrupted = True
        screen.print("finishing the answers under way; once more ends them at once", style="dim")
        gateway.drain()

    def ready() -> None:
        typer.echo(_welcome(gateway, with_key, submissions))

    if warm:
        screen.print("loading models", style="dim")
    with interrupts(stop):
        whole = await gateway.serve(ready, warm=warm)
    code = ExitCode.SUCCEEDED if whole else ExitCode.INTERRUPTED
    if interrupted:
        leave_at_once(code)  # without waiting for a model that is still loading
    return code


def request_line(exchange: GatewayExchange) -> None:
    """Print a finished request: what was asked, its status, its id, and its runs."""
    what = " ".join(filter(None, (exchange.method, exchange.path, exchange.model)))
    end = "gone" if exchange.gone else str(exchange.status)
    parts = [end, one_line(what, 120), duration(exchange.seconds), exchange.id, *exchange.runs]
    if exchange.error:
        parts.append(one_line(exchange.error, _LONGEST_ERROR))
    style = None if exchange.ok else "yellow"
    console.stderr().print("  ".join(parts), style=style, soft_wrap=True)


def _welcome(gateway: WorkflowGateway, with_key: bool, submissions: bool = False) -> str:
    url = f"{gateway.address}/v1"
    name = clean(gateway.flow_models[0].model)
    key = " -H 'Authorization: Bearer KEY'" if with_key else ""
    body = f'{{"model": "{name}", "messages": [{{"role": "user", "content": "Hello"}}]}}'
    shown_key = "KEY" if with_key else "none"
    lines = [
        f"listening on {url}",
        *(_model_line(model) for model in gateway.flow_models),
        *(clean(f"  {name}: the model as it is") for name in gateway.other_models),
        *([f"  submissions: POST {url}/runs"] if submissions else []),
        "",
        f"curl {url}/chat/completions{key} -H 'Content-Type: application/json' -d '{body}'",
        f'client = openai.OpenAI(base_url="{url}", api_key="{shown_key}")',
    ]
    return "\n".join(lines)


def _model_line(model: FlowModel) -> str:
    fills = [name for name in (model.inputs.conversation, model.inputs.question) if name]
    chat = f"the chat fills {' and '.join(fills)}" if fills else "it does not read the chat"
    how = "streams as it is written" if model.streams else "comes when it is ready"
    return clean(f"  {model.model}: {chat}, the answer {how}")
