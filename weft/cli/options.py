"""Options that several commands share, and the parsing of their texts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.core.errors import BuildError, InputError, SourceError

if TYPE_CHECKING:
    from weft.cluster.settings import Placement
    from weft.workflow.document.spec.settings import Durability


_RUN_NAME = re.compile(r"\w[\w.:-]{0,99}")


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """`["k=v"]` as `{"k": "v"}`. Only the first `=` counts. The last of equal names wins.

    Raises: `typer.BadParameter` for a text without a name and `=`.
    """
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"expected NAME=VALUE, got {text!r}", param_hint=option)
        values[name.strip()] = value
    return values


def inputs_file(path: Path) -> dict[str, object]:
    """The JSON object in the file. Raises: `SourceError` with the position of a defect."""
    return _object(_content(path), str(path))


def json_object(given: str, option: str) -> dict[str, object]:
    """The JSON object `given`, or the one in the file of that name.

    Raises: `SourceError` with the position of a defect, `typer.BadParameter` without such a file.
    """
    if given.lstrip().startswith("{"):
        return _object(given, option)
    if not Path(given).is_file():
        message = f"expected a JSON object or the name of a file that has one, got {given!r}"
        raise typer.BadParameter(message, param_hint=option)
    return inputs_file(Path(given))


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None


def _object(text: str, where: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise SourceError(
            f"not JSON: {error.msg}", file=where, line=error.lineno, column=error.colno
        ) from None
    except RecursionError:
        raise SourceError("nested too deeply", file=where) from None
    if not isinstance(value, dict):
        hint = 'such as {"question": "why?"}'
        raise SourceError("expected a JSON object", file=where, hint=hint)
    return value


def loose_value(text: str) -> object:
    """`text` as JSON if it is JSON, such as a number or true; else as it is."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def token_count(text: str) -> int:
    """The tokens of `20000`, `20000tok` or `20ktok`; at least 1. Raises: `typer.BadParameter`."""
    from weft.workflow.document.spec.fields import parse_tokens

    try:
        count = parse_tokens(int(text) if text.isdigit() else text)
    except ValueError:
        count = 0
    if count < 1:
        raise typer.BadParameter(f"expected tokens such as 20000tok, got {text!r}")
    return count


def byte_count(text: str, option: str) -> int:
    """The bytes of `500KB`, `4MiB` or a bare number. Raises: `typer.BadParameter`."""
    from weft.workflow.document.spec.fields import parse_size

    try:
        return parse_size(int(text) if text.isdigit() else text)
    except ValueError as error:
        raise typer.BadParameter(f"{error}, got {text!r}", param_hint=option) from None


def run_name(text: str | None) -> str | None:
    """An id for a new run: one word, and not `last`. Raises: `typer.BadParameter`."""
    if text is None:
        return None
    if not _RUN_NAME.fullmatch(text) or text == "last":
        message = f"expected letters, digits and . _ - such as monday-2, not `last`, got {text!r}"
        raise typer.BadParameter(message)
    return text


def seconds(text: str) -> float:
    """The seconds of `500ms`, `30s`, `2m`, `1h`, `7d` or a bare number; more than 0.

    Raises: `typer.BadParameter`.
    """
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    number = text.strip().rstrip("mhsd")
    unit = text.strip()[len(number) :]
    try:
        value = float(number) * units[unit or "s"]
    except (ValueError, KeyError):
        value = 0.0
    if not 0 < value < float("inf"):
        raise typer.BadParameter(f"expected a duration such as 500ms, 30s or 2m, got {text!r}")
    return value


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
        "--model",
        "-m",
        metavar="MODEL",
        help="local:NAME, vllm:NAME, anthropic:NAME, gemini:NAME, or with --base-url NAME.",
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="SETTING",
        help="A sampling setting, such as temperature, that a hosted model is never sent.",
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
TopP = Annotated[float | None, typer.Option(metavar="P", help="Nucleus sampling.", max=1.0)]
TopK = Annotated[int | None, typer.Option(metavar="K", help="Only the K likeliest tokens.", min=1)]
MinP = Annotated[
    float | None,
    typer.Option(
        metavar="P", help="Only tokens with that part of the likeliest one's.", min=0, max=1
    ),
]
Effort = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="How much a reasoning model thinks: low, medium, ..."),
]
Thinking = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="The longest thought before an answer, on top of --max-tokens; 0: no thought.",
        min=0,
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
ApproveCalls = Annotated[
    bool,
    typer.Option(
        "--yes",
        help="Approve every call of a tool that needs an approval. Other questions stay open.",
    ),
]
OnCluster = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ray[:HOST:PORT]",
        help="Run the tools on a Ray cluster: this one, that of the workflow, or the one of `weft "
        "cluster up`. local: in this process.",
    ),
]
DEFAULT_MODEL = "local:smollm2-135m-instruct"
_HOSTED = ("anthropic:", "gemini:")


def declared_model(
    name: str,
    base_url: str | None,
    api_key_env: str | None,
    decode: str | None = None,
    ignore: Sequence[str] = (),
) -> str | dict[str, Any]:
    """The model as a workflow declares it. Raises: `typer.BadParameter`."""
    if name.startswith(_HOSTED):
        return _hosted(name, base_url, api_key_env, decode, ignore)
    if ignore:
        raise typer.BadParameter("goes with anthropic:NAME, gemini:NAME", param_hint="--ignore")
    if base_url is None:
        if api_key_env is not None:
            raise typer.BadParameter("goes with --base-url", param_hint="--api-key-env")
        if not name.startswith(("local:", "vllm:")):
            hint = f"expected local:NAME or vllm:NAME, got {name!r}; {_behind(name)}"
            raise typer.BadParameter(hint, param_hint="--model")
        return name if decode is None else _decoding(name, decode)
    if decode is not None:
        hint = "a server decodes all of its requests alike: say it to `weft serve`"
        raise typer.BadParameter(hint, param_hint="--decode")
    declared: dict[str, Any] = {"use": "openai", "model": name, "base_url": base_url}
    return declared if api_key_env is None else {**declared, "api_key_env": api_key_env}


def _hosted(
    name: str,
    base_url: str | None,
    api_key_env: str | None,
    decode: str | None,
    ignore: Sequence[str],
) -> str | dict[str, Any]:
    if decode is not None:
        raise typer.BadParameter("hosted APIs have no choice of decoders", param_hint="--decode")
    use, _, model = name.partition(":")
    options = {"ignore": list(ignore)} if ignore else None
    further = {"base_url": base_url, "api_key_env": api_key_env, "options": options}
    given = {key: value for key, value in further.items() if value is not None}
    return {"use": use, "model": model, **given} if given else name


def _behind(name: str) -> str:
    """How to name a model behind an endpoint, where `name` alone was given."""
    model, url = ("NAME", name) if "://" in name else (name, "URL")
    return f"a model behind an endpoint is --model {model} --base-url {url}"


def _decoding(name: str, decode: str) -> dict[str, Any]:
    use, _, model = name.partition(":")
    return {"use": use, "model": model, "options": {"decode": decode}}


def placement(text: str | None) -> Placement | None:
    """What `--on` says. Raises: `typer.BadParameter`."""
    from weft.cluster.settings import LOCAL, Ray

    if text is None or text == LOCAL:
        return None if text is None else "local"
    kind, _, address = text.partition(":")
    if kind != "ray":
        raise typer.BadParameter(f"{text!r} is neither ray nor local", param_hint="--on")
    try:
        return Ray(address)
    except BuildError as error:
        raise typer.BadParameter(str(error), param_hint="--on") from None


def how_durable(text: str | None) -> Durability | None:
    """The value of `--durability`, or None. Raises: `typer.BadParameter`."""
    durability: Durability | None
    durability = None if text is None else one_of(text, DURABILITIES, "--durability")
    return durability


def one_of(value: str, choices: Sequence[str], option: str) -> Any:
    """`value`, if it is one of `choices`. Raises: `typer.BadParameter`."""
    if value not in choices:
        raise typer.BadParameter(f"expected one of {', '.join(choices)}", param_hint=option)
    return value
