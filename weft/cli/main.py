"""The command line, put together. Knows the commands' names; each lives in its own file."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.commands.answer import HELP as ANSWER_HELP
from weft.cli.commands.answer import answer
from weft.cli.commands.ask import HELP as ASK_HELP
from weft.cli.commands.ask import ask
from weft.cli.commands.check import check
from weft.cli.commands.decoders import decoders
from weft.cli.commands.diff import HELP as DIFF_HELP
from weft.cli.commands.diff import diff
from weft.cli.commands.doctor import doctor
from weft.cli.commands.gateway import HELP as GATEWAY_HELP
from weft.cli.commands.gateway import gateway
from weft.cli.commands.graph import graph
from weft.cli.commands.init import init
from weft.cli.commands.mcp import HELP as MCP_HELP
from weft.cli.commands.mcp import mcp
from weft.cli.commands.model import model
from weft.cli.commands.plan_serve import plan_serve
from weft.cli.commands.ps import ps
from weft.cli.commands.replay import HELP as REPLAY_HELP
from weft.cli.commands.replay import replay
from weft.cli.commands.resume import HELP as RESUME_HELP
from weft.cli.commands.resume import resume
from weft.cli.commands.run import HELP as RUN_HELP
from weft.cli.commands.run import run as run_workflow
from weft.cli.commands.runs import runs
from weft.cli.commands.schema import schema
from weft.cli.commands.serve import HELP as SERVE_HELP
from weft.cli.commands.serve import serve
from weft.cli.commands.simulate import HELP as SIMULATE_HELP
from weft.cli.commands.simulate import simulate
from weft.cli.commands.stop import stop
from weft.cli.commands.think import HELP as THINK_HELP
from weft.cli.commands.think import think
from weft.cli.commands.train_diffusion import HELP as TRAIN_DIFFUSION_HELP
from weft.cli.commands.train_diffusion import train_diffusion
from weft.cli.commands.train_drafter import HELP as TRAIN_HELP
from weft.cli.commands.train_drafter import train_drafter
from weft.cli.commands.ui import HELP as UI_HELP
from weft.cli.commands.ui import ui
from weft.cli.commands.version import show_version, version

app = typer.Typer(
    name="weft",
    help="Run parallel LLM programs: graphs of tool calls, model calls and people.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def main(
    show: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True, callback=show_version),
    ] = False,
) -> None:
    """Options before the command."""


app.command("run", help=RUN_HELP)(run_workflow)
app.command("resume", help=RESUME_HELP)(resume)
app.command("answer", help=ANSWER_HELP)(answer)
app.command("replay", help=REPLAY_HELP)(replay)
app.command("diff", help=DIFF_HELP)(diff)
app.command("simulate", help=SIMULATE_HELP)(simulate)
app.command("ask", help=ASK_HELP)(ask)
app.command("think", help=THINK_HELP)(think)
app.command("serve", help=SERVE_HELP)(serve)
app.command("ps")(ps)
app.command("stop")(stop)
app.command("gateway", help=GATEWAY_HELP)(gateway)
app.command("mcp", help=MCP_HELP)(mcp)
app.command("ui", help=UI_HELP)(ui)
app.command("plan-serve")(plan_serve)
app.command("train-drafter", help=TRAIN_HELP)(train_drafter)
app.command("train-diffusion", help=TRAIN_DIFFUSION_HELP)(train_diffusion)
for _command in (check, decoders, doctor, graph, init, schema, version):
    app.command()(_command)
app.add_typer(model, name="model")
app.add_typer(runs, name="runs")
