"""`weft ask`: a model plans calls of your tools, weft runs them, the model concludes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.agents.catalogue.options import CHOOSERS, LEAST_TOKENS, TOKENS, CatalogueOptions
from weft.agents.names import AGENTS
from weft.cli import options
from weft.cli.errors import report_errors, statuses
from weft.cli.exit_code import ExitCode
from weft.cli.files import writing
from weft.cli.run.session import run_settings
from weft.cli.text import clean
from weft.cli.thinking import ModelThinking, Switch
from weft.core.budget import Budget

if TYPE_CHECKING:
    from weft.agents.agent import AgentOptions
    from weft.cli.run.session import CommandOptions
    from weft.core.events import Listener
    from weft.planner.grammar.limits import GrammarLimits
    from weft.planner.rehearsal.options import RehearsalOptions
    from weft.workflow import FlowRun
    from weft.workflow.apps.tool_sources import ToolSources

_AGENT_LINES = "\n".join(f"  {name:<14}  {agent.summary}" for name, agent in AGENTS.items())
HELP = f"""Answer a question with tools.

A model plans the calls; each one starts as soon as its own line of the plan is written and what it
refers to is there. Then the model concludes, or plans again what failed. The run is recorded: `weft
resume` goes on with it, `weft replay` repeats it, and `weft runs` shows it.

\b
  weft ask "Which is cheaper, tea or coffee?" --tools ./tools.py --show-plan
  weft ask "..." --tools ./tools.py --model vllm:qwen3-8b --save plan.yaml
  weft ask "..." --catalogue tools.jsonl --catalogue-tokens 4000 --agent plan
  weft ask "..." --tools ./tools.py --facts world.yaml --goal "at(apple, kitchen)"
  weft run plan.yaml

\b
Agents:
{_AGENT_LINES}

\b
Exit status:
{statuses()}
"""


def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to find out.")],
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
    catalogue: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Tools with their fields, JSON or JSON lines: only those that fit the question "
            "are offered. Functions of the same names come from --tools.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    catalogue_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Offer at most so many tokens of tools (8,000 of a catalogue); without "
            "--catalogue of those of --tools.",
            min=LEAST_TOKENS,
        ),
    ] = None,
    chooser: Annotated[
        str | None,
        typer.Option(metavar="HOW", help=f"Who chooses them: {', '.join(CHOOSERS)}."),
    ] = None,
    facts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What holds before the first call, a YAML list: - open(fridge). The plan is "
            "rehearsed by what its tools need and make: missing calls are filled in.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    goal: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FACT",
            help="What has to hold after the plan: 'at(apple, kitchen)'. Repeat it for more.",
        ),
    ] = None,
    agent: Annotated[
        str, typer.Option(metavar="NAME", help=f"How it works: {', '.join(AGENTS)}.")
    ] = "compiler",
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="local:NAME, vllm:NAME, anthropic:NAME, gemini:NAME, or with --base-url NAME. By "
            "default local:weft-planner, for other agents and with --schema "
            f"{options.DEFAULT_MODEL}.",
        ),
    ] = None,
    base_url: options.BaseUrl = None,
    api_key_env: options.ApiKeyEnv = None,
    ignore: options.Ignore = None,
    decode: options.Decode = None,
    show_plan: Annotated[
        bool, typer.Option("--show-plan", help="Print what the model writes while it writes it.")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="YAML",
            help="Write the plan that worked as a workflow for `weft run` (agent compiler).",
            dir_okay=False,
        ),
    ] = None,
    schema: options.AnswerSchema = None,
    instructions: Annotated[
        str, typer.Option(metavar="TEXT", help="Something more to tell the model.")
    ] = "",
    rounds: Annotated[int, typer.Option(metavar="N", help="At most so many plans.", min=1)] = 4,
    calls: Annotated[int, typer.Option(metavar="N", help="At most so many calls.", min=0)] = 64,
    constrain: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="Hold the plan to a grammar: auto, line (exact types), plan, never.",
        ),
    ] = "auto",
    grammar: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BOUND=N",
            help="How long values of a plan may be where it is held to a grammar: chars=4000, "
            "items=1000, depth=16, digits=309, decimals=40. Repeat it for more.",
        ),
    ] = None,
    temperature: Annotated[
        float, typer.Option(metavar="T", help="0: always the likeliest token.", min=0.0)
    ] = 0.0,
    top_p: options.TopP = None,
    top_k: options.TopK = None,
    min_p: options.MinP = None,
    reasoning_effort: options.Effort = None,
    thinking: Switch = None,
    thinking_tokens: options.Thinking = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Makes it repeatable.", min=0)
    ] = None,
    max_tokens: Annotated[
        int, typer.Option(metavar="N", help="At most so many tokens a model turn.", min=1)
    ] = 1024,
    tokens: Annotated[
        int | None, typer.Option(metavar="N", help="At most so many tokens in all.", min=1)
    ] = None,
    deadline: options.Deadline = None,
    answer: options.GivenAnswers = None,
    yes: options.ApproveCalls = False,
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
        from weft.agents.agent import AgentOptions
        from weft.cli.run.session import CommandOptions
        from weft.workflow.apps.ask import default_model

        agent = options.one_of(agent, list(AGENTS), "--agent")
        given = None if schema is None else options.json_object(schema, "--schema")
        if model is None:
            model = default_model(agent, AgentOptions(schema=given))
        declared = options.declared_model(model, base_url, api_key_env, decode, ignore or ())
        thought = ModelThinking(declared, thinking_tokens, reasoning_effort).switched(thinking)
        agent_options = AgentOptions(
            rounds=rounds,
            calls=calls,
            schema=given,
            grammar=_limits(grammar or ()),
            constrain=options.one_of(constrain, ("auto", "line", "plan", "never"), "--constrain"),
            temperature=temperature,
            seed=seed,
            top_p=top_p,
            top_k=top_k,
            min_p=min_p,
            reasoning_effort=thought.effort,
            thinking_tokens=thought.tokens,
            max_tokens=max_tokens,
            instructions=instructions,
            catalogue=_catalogue(catalogue, catalogue_tokens, chooser),
            rehearsal=_rehearsal(facts, goal or ()),
        )
        command = CommandOptions(
            as_json=as_json,
            quiet=quiet,
            debug=debug,
            events=events,
            timeline=timeline,
            concurrency=concurrency,
            deadline_s=deadline_s,
            answers=options.pairs(answer or (), "--answer"),
            approve=yes,
            print_streams=show_plan,
            journal=journal,
            durability=when,
            run=run_id,
        )
        budget = None if tokens is None else Budget(tokens=tokens)
        question_command = _AskCommand(question, agent, agent_options, budget, save)
        code = asyncio.run(question_command.answer(tools or (), thought.model, command))
    raise typer.Exit(code)


def _catalogue(
    file: Path | None, tokens: int | None, chooser: str | None
) -> CatalogueOptions | None:
    """The catalogue, if any of its options is given. Raises: `BadParameter`."""
    if file is None and tokens is None:
        if chooser is not None:
            raise typer.BadParameter("--chooser goes with --catalogue or --catalogue-tokens")
        return None
    by = options.one_of(chooser or "lexical", tuple(CHOOSERS), "--chooser")
    return CatalogueOptions(file, TOKENS if tokens is None else tokens, by)


def _rehearsal(file: Path | None, goals: Sequence[str]) -> RehearsalOptions | None:
    """The rehearsal, if there are facts or goals. Raises: `BuildError`."""
    if file is None and not goals:
        return None
    from weft.planner.rehearsal.options import RehearsalOptions
    from weft.workflow.document.facts_file import read_facts

    return RehearsalOptions(() if file is None else read_facts(file), goals)


def _limits(given: Sequence[str]) -> GrammarLimits:
    """The bounds of a grammar. Raises: `BadParameter`."""
    from weft.planner.grammar.limits import BOUNDS, GrammarLimits

    bounds: dict[str, int] = {}
    for text in given:
        name, _, number = text.partition("=")
        if not number.isdecimal():
            raise typer.BadParameter(f"{text!r} is not BOUND=N, as in chars=500")
        bounds[options.one_of(name, BOUNDS, "--grammar")] = int(number)
    return GrammarLimits(**bounds)


@dataclass(frozen=True, slots=True)
class _AskCommand:
    """One question from the command line."""

    question: str
    agent: str
    options: AgentOptions
    budget: Budget | None
    save: Path | None

    async def answer(
        self, tools: Sequence[str], model: str | Mapping[str, Any], command: CommandOptions
    ) -> ExitCode:
        """Run it to the end. Raises: `BuildError` for invalid arguments."""
        from weft.cli.run.session import Session, journal_for
        from weft.workflow import Models
        from weft.workflow.apps.ask import ask_flow, check_question
        from weft.workflow.apps.tool_sources import ToolSources

        check_question(self.question, self.agent, self.options)
        sources = ToolSources(tools)
        if self.save is not None:
            sources.declarations(self.save.resolve().parent)  # checked before the run
        flow = ask_flow(self.question, sources, self.agent, self.options, model)
        async with flow as question_flow, Models() as models:
            question_flow.flow.check(tools=question_flow.tools)
            with journal_for(question_flow.flow, command) as journal:
                runs: list[FlowRun] = []

                def start(listeners: Sequence[Listener]) -> FlowRun:
                    settings = run_settings(command, journal, listeners, budget=self.budget)
                    runs.append(question_flow.start(models, settings))
                    return runs[0]

                code = await Session(start, command, self.budget, journal=journal).run()
            if self.save is not None and code is ExitCode.SUCCEEDED:
                self._write(runs[0], sources, model)
            return code

    def _write(self, run: FlowRun, sources: ToolSources, model: str | Mapping[str, Any]) -> None:
        from weft.cli import console
        from weft.workflow.apps.ask import answer_of_run, plan_as_yaml

        assert self.save is not None
        text = plan_as_yaml(
            self.question, answer_of_run(run), sources, self.save.resolve().parent, model
        )
        with writing(self.save):
            self.save.write_text(text, encoding="utf-8")
        name = clean(str(self.save))
        console.stderr().print(f"wrote {name}: weft run {name}", soft_wrap=True)
