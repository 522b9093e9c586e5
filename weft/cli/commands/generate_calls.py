"""`weft generate-calls`: data for training and testing a function caller."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from weft.cli import options
from weft.cli.errors import report_errors
from weft.core.errors import InputError

if TYPE_CHECKING:
    from typing import Any

    from weft.agents.calls import CallTool, GenerateOptions, Outcome

_RUN = frozenset((".py", ".yaml", ".yml"))
_USES = ("propose", "judge", "reword")
HELP = """Make queries with the tools offered and the calls that answer them.

Without a model, rules draw the calls and write the queries. Gates refuse what is wrong: `format`
(names, schemas, style), `semantic` (the query has every value and intent), with --run `execution`
(the calls neither fail nor return nothing), with --model a judge.

\b
Examples:
  weft generate-calls --tools tools.jsonl --out train.jsonl --n 2000 --split 90 --variants 50
  weft generate-calls --run ./tools.py --out calls.jsonl --n 200
  weft generate-calls --run ./tools.py --out calls.jsonl --model vllm:qwen3-8b --use propose,judge
"""


def generate_calls(
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write the items here, as JSON lines.")],
    tools: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Tool schemas: a JSON array or JSON lines."),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="PATH",
            help="Run the calls: ./tools.py, package.module, or the tools of ./flow.yaml; without "
            "--tools they are also offered. Repeat it for more. Python files are run, and so are "
            "the tools, with made-up arguments.",
        ),
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="How many items.")] = 1000,
    styles: Annotated[
        str | None, typer.Option(metavar="STYLE=WEIGHT,...", help="Else all styles equally.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same items.")] = 0,
    split: Annotated[
        int, typer.Option(min=1, max=100, help="Per cent of the tools that are for training.")
    ] = 100,
    test: Annotated[bool, typer.Option("--test", help="Use the other tools of the split.")] = False,
    exclude: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Names of tools to leave out, one a line.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    variants: Annotated[
        int,
        typer.Option(min=0, max=100, help="Per cent of tools shown under a schema drawn anew."),
    ] = 0,
    composed: Annotated[
        int, typer.Option(min=0, help="Add so many tools made of word lists, with numbers, lists.")
    ] = 0,
    per_skeleton: Annotated[
        int, typer.Option(min=1, help="At most so many items that differ in values only.")
    ] = 2,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="local:NAME, vllm:NAME, anthropic:NAME, gemini:NAME, or with --base-url NAME.",
        ),
    ] = None,
    use: Annotated[
        str,
        typer.Option(metavar="USE,...", help=f"What the model does: {', '.join(_USES)}."),
    ] = "propose,judge",
    base_url: options.BaseUrl = None,
    api_key_env: options.ApiKeyEnv = None,
    width: Annotated[
        int, typer.Option(min=1, help="So many items wait for tools and the model at once.")
    ] = 16,
    refused: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write refused items and reasons here.")
    ] = None,
    debug: options.Debug = False,
) -> None:
    """See `HELP`."""
    with report_errors(debug=debug):
        from weft.agents.calls import STYLES, GenerateOptions, generate

        uses = _checked_uses(use)
        declared = model and options.declared_model(model, base_url, api_key_env)
        job = _CallJob(
            _Source(tools, tuple(run or ()), exclude, composed, split, test, seed),
            GenerateOptions(
                n,
                _weights(styles) if styles else dict.fromkeys(STYLES, 1.0),
                seed,
                per_skeleton=per_skeleton,
                variants=variants / 100,
            ),
            width,
        )
        with out.open("w", encoding="utf-8") as good, _opened(refused) as bad:
            report = _Report(good, bad)
            if run or declared:
                asyncio.run(job.checked(report, declared or None, uses))
            else:
                chosen, report.faulty = job.source.read(())
                for outcome in generate(chosen, job.options):
                    report.take(outcome)
        report.show(out, [name for name, weight in job.options.styles.items() if weight])


@dataclass(frozen=True, slots=True)
class _Source:
    """Where the tools come from."""

    file: Path | None
    run: tuple[str, ...]
    exclude: Path | None
    composed: int
    split: int
    test: bool
    seed: int

    def read(self, own: Sequence[CallTool]) -> tuple[Sequence[CallTool], list[str]]:
        """The tools of the split, and the declarations that were left out.

        `own` are those of `--run`, which count where no file declares any.
        """
        from weft.agents.calls import compose_tools, read_tools
        from weft.agents.calls import split as split_tools
        from weft.agents.calls.catalogue import without

        faulty: list[str] = []
        if self.file is None and not own and not self.composed:
            raise InputError("there are no tools", hint="give --tools FILE, --run PATH or both")
        if self.file is not None and self.file.suffix in _RUN:
            raise InputError(f"{self.file} is no JSON", hint=f"give it to --run: {self.file}")
        found = tuple(own) if self.file is None else read_tools(self.file, faulty)
        names = {tool.name for tool in found}
        more = compose_tools(self.composed, self.seed)
        found += tuple(tool for tool in more if tool.name not in names)
        left_out = self.exclude.read_text("utf-8").split() if self.exclude else []
        return split_tools(without(found, left_out), self.split / 100, self.seed)[self.test], faulty


@dataclass(frozen=True, slots=True)
class _CallJob:
    """Items from tools that run and a model that proposes, judges or rewords."""

    source: _Source
    options: GenerateOptions
    width: int

    async def checked(
        self, report: _Report, model: str | Mapping[str, Any] | None, uses: frozenset[str]
    ) -> None:
        """Fill `report`."""
        from weft.agents.calls import CallModel, CallTool, generate_checked
        from weft.agents.calls.attempts import WaitingGates, model_attempts, rule_attempts
        from weft.agents.calls.execution import is_runnable
        from weft.workflow import Models
        from weft.workflow.apps.tool_sources import ToolSources

        async with AsyncExitStack() as stack:
            runner = None
            if self.source.run:
                sources = await stack.enter_async_context(ToolSources(self.source.run))
                runner = sources.runner
            own = [
                CallTool(spec.name, spec.description, spec.parameters)
                for spec in (runner.specs() if runner else ())
            ]
            chosen, report.faulty = self.source.read(own)
            asked = None
            if model is not None:
                models = await stack.enter_async_context(Models())
                asked = CallModel(models.of(model))
            gates = WaitingGates(
                runner,
                asked if "judge" in uses else None,
                asked if "reword" in uses else None,
            )
            attempts = (
                model_attempts(chosen, self.options, asked, gates)
                if asked is not None and "propose" in uses
                else rule_attempts(chosen, self.options, gates)
            )
            async for outcome in generate_checked(attempts, self.options, self.width):
                report.take(outcome)
                if outcome[1] is None and runner is not None:
                    report.not_run += not is_runnable(outcome[0], runner)


class _Report:
    """Writes items and refusals, and counts them."""

    def __init__(self, good: TextIO, bad: TextIO) -> None:
        self._good, self._bad = good, bad
        self._kept: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self.faulty: list[str] = []
        self.not_run = 0

    def take(self, outcome: Outcome) -> None:
        """Write one item to its file."""
        item, refusal = outcome
        if refusal is None:
            self._kept[item.style] += 1
            _write(self._good, item.document())
            return
        reason = (
            {"gate": refusal}
            if isinstance(refusal, str)
            else {one: getattr(refusal, one) for one in ("gate", "reason", "detail")}
        )
        self._refused[reason["gate"]] += 1
        _write(self._bad, item.document() | {"refusal": reason})

    def show(self, out: Path, styles: Sequence[str]) -> None:
        """Print what was written, and of which of `styles` there was nothing to write."""
        from weft.cli.console import stderr

        gates = ", ".join(f"{gate} {count}" for gate, count in self._refused.most_common())
        told = f"{self._kept.total()} items in {out}, {self._refused.total()} refused"
        stderr().print(f"{told} ({gates})" if gates else told, markup=False)
        if none := [name for name in styles if not self._kept[name]]:
            stderr().print(f"no items of {', '.join(none)}: these tools gave none", markup=False)
        if self.not_run:
            stderr().print(
                f"{self.not_run} items have calls that were not run: no tool of --run has the name",
                markup=False,
            )
        if self.faulty:
            more = f"{len(self.faulty)} declarations were left out, the first: {self.faulty[0]}"
            stderr().print(more, markup=False)


def _checked_uses(text: str) -> frozenset[str]:
    names = frozenset(text.split(","))
    if unknown := sorted(names - set(_USES)):
        known = ", ".join(_USES)
        raise typer.BadParameter(f"{unknown[0]!r} is none of {known}", param_hint="--use")
    return names


def _weights(text: str) -> dict[str, float]:
    try:
        given = options.pairs(text.split(","), "--styles")
        return {name: float(x) for name, x in given.items()}
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--styles") from None


def _opened(path: Path | None) -> TextIO:
    import os

    return (path or Path(os.devnull)).open("w", encoding="utf-8")


def _write(file: TextIO, document: object) -> None:
    file.write(json.dumps(document, ensure_ascii=False) + "\n")
