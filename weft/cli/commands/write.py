"""`weft write`: a model writes a workflow file from words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import options
from weft.cli.errors import report_errors, statuses
from weft.cli.exit_code import ExitCode
from weft.cli.run.session import run_settings
from weft.cli.text import clean
from weft.core.budget import Budget

if TYPE_CHECKING:
    from weft.cli.run.session import CommandOptions
    from weft.core.events import Listener
    from weft.workflow import FlowRun
    from weft.workflow.apps.write import WrittenWorkflow
    from weft.workflow.author.intention import Intention
    from weft.workflow.author.program import WriteOptions

HELP = f"""Write a workflow file from words, with your tools.

A model writes it in layers: what the workflow takes and gives, its steps, a skeleton of nodes
(tool, model, map, branch, loop, value) with edges, then the fields of all nodes at once. What
`weft check` finds goes back to the model for the nodes that it names, at most three times; other
nodes stay as they are. Nothing of the new workflow runs. The run that writes it is recorded.

\b
  weft write "Find pages on a topic and summarise each" --tools ./tools.py --out flow.yaml
  weft write "..." --tools ./tools.py --model vllm:qwen3-8b --intention form.json --out flow.yaml
  weft run flow.yaml -i topic=tea

\b
Where defects remain, the file is written with a comment at each of them, and the exit status is 2.

\b
Exit status:
{statuses()}
"""


def write(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What the workflow is to do.")],
    out: Annotated[
        Path,
        typer.Option(metavar="YAML", help="The new file. One that exists is kept.", dir_okay=False),
    ],
    tools: Annotated[
        list[str] | None,
        typer.Option(
            "--tools",
            "-t",
            metavar="PATH",
            help="./tools.py, ./tools.py:name, package.module, or the tools of a workflow: "
            "./flow.yaml. Repeat it for more. Python files are run.",
        ),
    ] = None,
    intention: Annotated[
        Path | None,
        typer.Option(
            metavar="JSON",
            help='Start from this form instead of the model\'s: {"input": [{"name", "type"}], '
            '"output": [...], "context"}.',
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="The workflow's name; else the file's."),
    ] = None,
    model: options.Model = options.DEFAULT_MODEL,
    base_url: options.BaseUrl = None,
    api_key_env: options.ApiKeyEnv = None,
    ignore: options.Ignore = None,
    decode: options.Decode = None,
    temperature: Annotated[
        float, typer.Option(metavar="T", help="0: always the likeliest token.", min=0.0)
    ] = 0.0,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Makes it repeatable.", min=0)
    ] = None,
    max_tokens: Annotated[
        int, typer.Option(metavar="N", help="At most so many tokens a call.", min=1)
    ] = 2048,
    tokens: Annotated[
        int | None, typer.Option(metavar="N", help="At most so many tokens in all.", min=1)
    ] = None,
    deadline: options.Deadline = None,
    concurrency: options.CallsAtOnce = None,
    as_json: options.AsJson = False,
    events: options.EventsFile = None,
    timeline: options.TimelineFile = None,
    durability: options.HowDurable = None,
    journal: options.JournalPlace = None,
    run_id: options.RunName = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """See `HELP`."""
    deadline_s = None if deadline is None else options.seconds(deadline)
    when = options.how_durable(durability)
    with report_errors(debug=debug, as_json=as_json):
        from weft.cli.run.session import CommandOptions
        from weft.workflow.author.program import WriteOptions

        declared = options.declared_model(model, base_url, api_key_env, decode, ignore or ())
        given = WriteOptions(
            intention=None if intention is None else _intention(intention),
            name=name,
            max_tokens=max_tokens,
            temperature=temperature,
            seed=seed,
        )
        command = CommandOptions(
            as_json=as_json,
            quiet=quiet,
            debug=debug,
            events=events,
            timeline=timeline,
            concurrency=concurrency,
            deadline_s=deadline_s,
            silent=not as_json,
            journal=journal,
            durability=when,
            run=run_id,
        )
        budget = None if tokens is None else Budget(tokens=tokens)
        code = asyncio.run(
            _WriteCommand(query, out, given, budget).run(tools or (), declared, command)
        )
    raise typer.Exit(code)


def _intention(file: Path) -> Intention:
    """The form in a file. Raises: `BuildError`."""
    from weft.core.errors import BuildError
    from weft.workflow.author.intention import read_intention

    try:
        raw = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BuildError(f"{file} is not JSON: {error}", hint="write a JSON object") from error
    return read_intention(raw, str(file))


@dataclass(frozen=True, slots=True)
class _WriteCommand:
    """One workflow to be written, from the command line."""

    query: str
    out: Path
    options: WriteOptions
    budget: Budget | None

    async def run(
        self, tools: Sequence[str], model: str | Mapping[str, Any], command: CommandOptions
    ) -> ExitCode:
        """Write it and report. Raises: `BuildError`, also for defects that remain."""
        from weft.cli.run.session import Session, journal_for
        from weft.workflow import Models
        from weft.workflow.apps.tool_sources import ToolSources
        from weft.workflow.apps.write import write_flow, written_by

        question = write_flow(self.query, ToolSources(tools), model, self.out, self.options)
        question.flow.check()
        async with Models() as models:
            with journal_for(question.flow, command) as journal:
                runs: list[FlowRun] = []

                def start(listeners: Sequence[Listener]) -> FlowRun:
                    settings = run_settings(command, journal, listeners, budget=self.budget)
                    runs.append(question.start(models, settings))
                    return runs[0]

                code = await Session(start, command, self.budget, journal=journal).run()
        result = runs[0].result
        if code is ExitCode.SUCCEEDED and result is not None:
            _report(written_by(result, runs[0].id), quiet=command.quiet)
        return code


def _report(written: WrittenWorkflow, *, quiet: bool) -> None:
    """Print what was written and repaired. Raises: `SourceError` for defects that remain."""
    from weft.cli import console

    screen = console.stderr()
    if not quiet:
        for part in written.repaired:
            line = f"repaired {part.part}: {part.defect}"
            screen.print(clean(line), markup=False, soft_wrap=True)
        name = clean(str(written.file.name))
        screen.print(f"wrote {name}: weft run {name}", markup=False, soft_wrap=True)
    written.check()
