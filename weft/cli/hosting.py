"""A gateway from the command line: what it says when it is ready, for each request, at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from weft.cli import console
from weft.cli.exit_codes import ExitCode
from weft.cli.interrupts import interrupts, leave_at_once
from weft.cli.text import clean, duration, one_line

if TYPE_CHECKING:
    from weft.workflow.as_model import FlowModel
    from weft.workflow.gateway import Exchange, WorkflowGateway

_LONGEST_ERROR = 400


async def hosted(gateway: WorkflowGateway, *, warm: bool, with_key: bool) -> ExitCode:
    """Serve until a signal comes. Raises: `ServeError`, and what loading models raises."""
    screen = console.stderr()
    interrupted = False

    def stop() -> None:
        nonlocal interrupted
        interrupted = True
        screen.print("finishing the answers under way; once more ends them at once", style="dim")
        gateway.drain()

    def ready() -> None:
        typer.echo(_welcome(gateway, with_key))

    if warm:
        screen.print("loading models", style="dim")
    with interrupts(stop):
        whole = await gateway.serve(ready, warm=warm)
    code = ExitCode.SUCCEEDED if whole else ExitCode.INTERRUPTED
    if interrupted:
        leave_at_once(code)  # not even a model that is still loading holds up the end
    return code


def request_line(exchange: Exchange) -> None:
    """Print a request that has ended: what was asked, what became of it, its id, and its runs."""
    what = " ".join(filter(None, (exchange.method, exchange.path, exchange.model)))
    end = "gone" if exchange.gone else str(exchange.status)
    parts = [end, one_line(what, 120), duration(exchange.seconds), exchange.id, *exchange.runs]
    if exchange.error:
        parts.append(one_line(exchange.error, _LONGEST_ERROR))
    style = None if exchange.ok else "yellow"
    console.stderr().print("  ".join(parts), style=style, soft_wrap=True)


def _welcome(gateway: WorkflowGateway, with_key: bool) -> str:
    url = f"{gateway.address}/v1"
    name = clean(gateway.flow_models[0].model)
    key = " -H 'Authorization: Bearer KEY'" if with_key else ""
    body = f'{{"model": "{name}", "messages": [{{"role": "user", "content": "Hello"}}]}}'
    shown_key = "KEY" if with_key else "none"
    lines = [
        f"listening on {url}",
        *(_model_line(model) for model in gateway.flow_models),
        *(clean(f"  {name}: the model as it is") for name in gateway.other_models),
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
