"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.given import run_name

if TYPE_CHECKING:
    from weft.workflow.document.settings import Durability

WorkflowFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="The workflow, a YAML file.", exists=True, dir_okay=False),
]
WorkflowFiles = Annotated[
    list[Path],
    typer.Argument(metavar="FILE", help="Workflows.", exists=True, dir_okay=False),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback when something fails.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
EventsFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write every event, a JSON object a line.", dir_okay=False),
]
TimelineFile = Annotated[
    Path | None,
    typer.Option(metavar="HTML", help="Write a page with the run's Gantt chart.", dir_okay=False),
]
Deadline = Annotated[
    str | None, typer.Option(metavar="TIME", help="End the run then, such as 500ms, 30s or 2m.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer and nothing else.")]
Model = Annotated[
    str,
    typer.Option(
        "--model", "-m", metavar="MODEL", help="local:NAME, vllm:NAME, or with --base-url NAME."
    ),
]
BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="An OpenAI-compatible server, with its /v1.")
]
ApiKeyEnv = Annotated[
    str | None, typer.Option(metavar="NAME", help="The variable that holds the server's key.")
]
Decode = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        help="How it writes several tokens a step, such as lookup:8; see `weft decoders`.",
    ),
]
AnswerSchema = Annotated[
    str | None,
    typer.Option(metavar="JSON|FILE", help="A JSON Schema that the answer must fit."),
]
CallsAtOnce = Annotated[
    int | None, typer.Option(metavar="N", help="At most so many calls at once.", min=1)
]
JournalPlace = Annotated[
    str | None,
    typer.Option(
        "--journal",
        metavar="PATH",
        help="Where runs are kept, a file or postgresql://...; else WEFT_JOURNAL, else your data "
        "folder.",
    ),
]
DURABILITIES = ("sync", "async", "exit", "none")
HowDurable = Annotated[
    str | None,
    typer.Option(
        "--durability",
        metavar="HOW",
        help="When what happens is recorded: sync, before anything follows from it; async, "
        "soon; exit, at the end; none.",
    ),
]
RunName = Annotated[
    str | None,
    typer.Option(
        "--run-id", metavar="RUN", help="The run's id; else one is made.", callback=run_name
    ),
]
Run = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run's id, the beginning of one, or last."),
]
GivenAnswers = Annotated[
    list[str] | None,
    typer.Option(
        "--answer", metavar="NODE=VALUE", help="The answer to what a node asks; repeat it."
    ),
]
DEFAULT_MODEL = "local:smollm2-135m-instruct"


def declared_model(
    name: str, base_url: str | None, api_key_env: str | None, decode: str | None = None
) -> str | dict[str, Any]:
    """The model as a workflow declares it. Raises: `typer.BadParameter`."""
    if base_url is None:
        if api_key_env is not None:
            raise typer.BadParameter("goes with --base-url", param_hint="--api-key-env")
        return name if decode is None else _decoding(name, decode)
    if decode is not None:
        hint = "a server decodes all of its requests alike: say it to `weft serve`"
        raise typer.BadParameter(hint, param_hint="--decode")
    declared: dict[str, Any] = {"use": "openai", "model": name, "base_url": base_url}
    return declared if api_key_env is None else {**declared, "api_key_env": api_key_env}


def _decoding(name: str, decode: str) -> dict[str, Any]:
    use, _, model = name.partition(":")
    return {"use": use, "model": model, "options": {"decode": decode}}


def how_durable(text: str | None) -> Durability | None:
    """What `--durability` says; None: nothing. Raises: `typer.BadParameter`."""
    kept: Durability | None
    kept = None if text is None else one_of(text, DURABILITIES, "--durability")
    return kept


def one_of(value: str, there: Sequence[str], option: str) -> Any:
    """`value`, if it is `there`. Raises: `typer.BadParameter`."""
    if value not in there:
        raise typer.BadParameter(f"expected one of {', '.join(there)}", param_hint=option)
    return value
