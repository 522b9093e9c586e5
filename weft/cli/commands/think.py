"""`weft think`: a model answers by a reasoning strategy, in parallel threads."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import options
from weft.cli.errors import report_errors, statuses
from weft.cli.exit_code import ExitCode
from weft.cli.run.session import run_settings
from weft.cli.thinking import ModelThinking, Switch

if TYPE_CHECKING:
    from weft.cli.run.session import CommandOptions
    from weft.cli.threads.report import ThoughtDisplay
    from weft.core.events import Listener
    from weft.reasoning.options import ThinkOptions
    from weft.reasoning.question import Question
    from weft.workflow import FlowRun

HELP = f"""Answer a question by thinking about it: samples and votes, threads that fork and join.

A strategy spends more than one model call on the question, side by side where it can, within a
budget of tokens. What it needed and why it ended is printed with the answer. The run is recorded:
`weft resume` goes on with it, `weft replay` repeats it, and `weft runs` shows it.

\b
  weft think --list
  weft think "How many primes are below 100?" --strategy sample --width 16
  weft think "..." --model vllm:qwen3-8b --strategy parathinker --budget 20000tok
  weft think "What do they agree on?" --strategy map-reduce --document a.txt --document b.txt

\b
Exit status:
{statuses()}
"""


def think(
    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="What to think about.")
    ] = None,
    strategy: Annotated[
        str, typer.Option("--strategy", "-s", metavar="NAME", help="How to think: see --list.")
    ] = "sample",
    list_all: Annotated[
        bool, typer.Option("--list", help="Print the strategies, and what each of them needs.")
    ] = False,
    width: Annotated[
        int, typer.Option(metavar="N", help="So many threads or samples side by side.", min=1)
    ] = 8,
    budget: Annotated[
        str | None,
        typer.Option(metavar="TOKENS", help="At most so much generated text, such as 20000tok."),
    ] = None,
    path_tokens: Annotated[
        str | None,
        typer.Option(metavar="TOKENS", help="At most so much generated text in any chain of it."),
    ] = None,
    depth: Annotated[int, typer.Option(metavar="N", help="How deep forks may nest.", min=0)] = 2,
    rounds: Annotated[
        int, typer.Option(metavar="N", help="How often a thread may fork.", min=1)
    ] = 8,
    max_tokens: Annotated[
        int, typer.Option(metavar="N", help="The longest thread or sample, in tokens.", min=1)
    ] = 1024,
    answer_tokens: Annotated[
        int, typer.Option(metavar="N", help="Tokens that are kept back for the answer.", min=1)
    ] = 512,
    temperature: Annotated[
        float, typer.Option(metavar="T", help="0: always the likeliest token.", min=0.0)
    ] = 0.7,
    top_p: options.TopP = None,
    top_k: options.TopK = None,
    min_p: options.MinP = None,
    reasoning_effort: options.Effort = None,
    thinking: Switch = None,
    thinking_tokens: options.Thinking = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Makes it repeatable.", min=0)] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A setting of the strategy; repeat it for more."
        ),
    ] = None,
    system: Annotated[
        str, typer.Option(metavar="TEXT", help="What the model is told about its job.")
    ] = "",
    document: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A text that the question is about; repeat it for more.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    model: options.Model = options.DEFAULT_MODEL,
    base_url: options.BaseUrl = None,
    api_key_env: options.ApiKeyEnv = None,
    ignore: options.Ignore = None,
    decode: options.Decode = None,
    schema: options.AnswerSchema = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the tree of threads with its text: Markdown, or JSON if it ends in .json.",
            dir_okay=False,
        ),
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
    if list_all:
        from weft.cli.threads.report import print_strategies

        print_strategies(as_json=as_json)
        return
    if question is None:
        raise typer.BadParameter("give a question, or --list", param_hint="QUESTION")
    deadline_s = None if deadline is None else options.seconds(deadline)
    when = options.how_durable(durability)
    given: dict[str, Any] = {
        "width": width,
        "budget": None if budget is None else options.token_count(budget),
        "path_tokens": None if path_tokens is None else options.token_count(path_tokens),
        "depth": depth,
        "rounds": rounds,
        "max_tokens": max_tokens,
        "answer_tokens": answer_tokens,
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "min_p": min_p,
        "seed": seed,
        "settings": {
            name: options.loose_value(text)
            for name, text in options.pairs(settings or (), "--set").items()
        },
    }
    with report_errors(debug=debug, as_json=as_json):
        from weft.cli.run.session import CommandOptions
        from weft.reasoning.question import Question
        from weft.workflow.runtime.models.strategies import read_documents, settings_here

        declared = options.declared_model(model, base_url, api_key_env, decode, ignore or ())
        thought = ModelThinking(declared, thinking_tokens, reasoning_effort).switched(thinking)
        given["thinking_tokens"], given["reasoning_effort"] = thought.tokens, thought.effort
        given["settings"] = settings_here(strategy, given["settings"])
        command = CommandOptions(
            as_json=as_json,
            quiet=quiet,
            debug=debug,
            events=events,
            timeline=timeline,
            concurrency=concurrency,
            deadline_s=deadline_s,
            journal=journal,
            durability=when,
            run=run_id,
        )
        posed = Question(
            question,
            system,
            read_documents(document or ()),
            None if schema is None else options.json_object(schema, "--schema"),
        )
        question_command = _ThinkCommand(strategy, _options(given), posed, trace)
        code = asyncio.run(question_command.answer(thought.model, command))
    raise typer.Exit(code)


def _options(given: Mapping[str, Any]) -> ThinkOptions:
    from weft.reasoning.options import ThinkOptions

    try:
        return ThinkOptions(**given)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


class _ThinkCommand:
    """One thought from the command line."""

    def __init__(
        self, strategy: str, options: ThinkOptions, question: Question, trace: Path | None
    ) -> None:
        self._strategy = strategy
        self._options = options
        self._question = question
        self._trace = trace

    async def answer(self, model: str | Mapping[str, Any], command: CommandOptions) -> ExitCode:
        """Run it to the end. Raises: `BuildError` for invalid arguments."""
        from weft.cli.files import check_writable
        from weft.cli.run.session import Session, journal_for
        from weft.cli.threads.report import ThoughtDisplay
        from weft.workflow import Models
        from weft.workflow.apps.think import think_flow

        question_flow = think_flow(self._question, self._strategy, self._options, model)
        question_flow.flow.check()
        if self._trace is not None:
            check_writable(self._trace)  # before the run
        shown = ThoughtDisplay(self._strategy)
        with journal_for(question_flow.flow, command) as journal:
            async with Models() as models:

                def start(listeners: Sequence[Listener]) -> FlowRun:
                    settings = run_settings(command, journal, listeners)
                    shown.run = question_flow.start(models, settings)
                    return shown.run

                session = Session(
                    start,
                    command,
                    view=shown.view,
                    report=shown.report,
                    ending=lambda: self._write(shown),
                    journal=journal,
                )
                return await session.run()

    def _write(self, shown: ThoughtDisplay) -> None:
        """Write the tree of threads, or why there is none, if `--trace` is given."""
        from weft.cli.threads.trace_file import write_failure, write_trace
        from weft.workflow.apps.question import why_unanswered

        if self._trace is None:
            return
        question, thought = self._question.text, shown.thought()
        if thought is not None:
            write_trace(self._trace, self._strategy, question, thought)
        else:
            why = "nothing was asked" if shown.run is None else why_unanswered(shown.run)
            write_failure(self._trace, self._strategy, question, why)
