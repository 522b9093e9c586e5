"""The reference pages of the documentation, made from the code: `python scripts/reference.py`.

Writes docs/reference/. `--check` writes nothing and exits with 1 where a page is out of date, as
`tests/docs/test_reference.py` does.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, get_args

from typer.main import get_command
from typer.testing import CliRunner

import weft
import weft.events
from weft.cli.main import app
from weft.errors import BuildError
from weft.reasoning.options import ThinkOptions
from weft.reasoning.strategies import STRATEGIES, check_options

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "docs" / "reference"
PUBLIC: Final = tuple(
    name
    for name in ("weft", "weft.events", "weft.testing", "weft.serve", "weft.errors")
    if find_spec(name)
)
MADE: Final = "<!-- Made by scripts/reference.py from the code. Do not edit. -->\n\n"
Json = Mapping[str, Any]
_JSON_SCHEMA: Final = "json-schema.org"


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    made: dict[str, Callable[[], str]] = {
        "README.md": index,
        "cli.md": command_line,
        "yaml.md": yaml_keys,
        "python.md": python_api,
        "decoders.md": decoders,
        "strategies.md": strategies,
        "events.md": events,
        "errors.md": errors,
    }
    return {name: MADE + make().rstrip() + "\n" for name, make in made.items()}


def index() -> str:
    """What there is to look up, with numbers that a test of the README compares."""
    listed = _decoders()
    drafting = [each for each in listed if each["kind"] == "autoregressive"]
    filling = len(listed) - len(drafting)
    return f"""# Reference

Made from the code. A test fails where a page and the code differ.

| page | what is in it |
|---|---|
| [Command line](cli.md) | the help of all {len(list(_commands()))} commands, exit statuses |
| [YAML](yaml.md) | every key of a workflow file |
| [Python API](python.md) | every public name of `weft` and its public modules |
| [Decoders](decoders.md) | {len(drafting)} speculative decoders, {filling} of diffusion models |
| [Strategies and agents](strategies.md) | {len(STRATEGIES)} strategies, {len(_agents())} agents |
| [Events](events.md) | the {len(get_args(weft.events.Event))} events of a run |
| [Errors](errors.md) | every error that weft raises on purpose |
| [Ports](../contracts.md) | the interfaces between packages, and what each promises |
"""


# -- command line ----------------------------------------------------------------------------------


def command_line() -> str:
    """The help of every command."""
    text = "# Command line\n\nOne section for each command, as `weft COMMAND --help` prints it.\n"
    for words in _commands():
        name = " ".join(["weft", *words])
        text += f"\n{'##' if len(words) < 2 else '###'} {name}\n\n```text\n{_help(words)}\n```\n"
    return text


def _commands() -> Iterator[tuple[str, ...]]:
    def below(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield words
        for name in getattr(command, "list_commands", lambda _: ())(None):
            yield from below(command.commands[name], (*words, name))

    return below(get_command(app), ())


def _help(words: tuple[str, ...]) -> str:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"}, prog_name="weft")
    if shown.exit_code:
        raise SystemExit(shown.output)
    return shown.output.strip()


# -- YAML ------------------------------------------------------------------------------------------


def yaml_keys() -> str:
    """The tables of keys, from the JSON Schema that `weft schema` prints."""
    schema = weft.json_schema()
    parts: Json = schema["$defs"]
    kinds = [ref for ref in _refs(schema["properties"]["nodes"], parts) if _is_node(parts[ref])]
    common = set.intersection(*(set(parts[kind]["properties"]) for kind in kinds))
    text = "# YAML\n\nEvery key of a workflow file. [Workflows](../workflows.md) explains them. "
    text += (
        "`weft schema > weft.schema.json` gives your editor the same.\n\nBold keys are required.\n"
    )
    text += "\n## The file\n\n" + _keys(schema, parts)
    text += "\n## Every node\n\nKeys that every kind of node takes.\n\n"
    text += _keys(parts[kinds[0]], parts, only=common)
    for kind in kinds:
        text += f"\n## {_heading(kind)}\n\n{_described(parts[kind])}"
        text += _keys(parts[kind], parts, without=common)
    for name, part in parts.items():
        if name not in kinds and "properties" in part:
            text += f"\n## {_heading(name)}\n\n{_described(part)}{_keys(part, parts)}"
    return text


def _is_node(part: Json) -> bool:
    return {"when", "retry", "on_failure"} <= part.get("properties", {}).keys()


def _refs(schema: Any, parts: Json, seen: tuple[str, ...] = ()) -> list[str]:
    """The parts that a schema leads to, each once, in order; through parts that are unions."""
    found: list[str] = []
    for key, value in schema.items() if isinstance(schema, Mapping) else enumerate(schema):
        if key == "$ref":
            name = value.rpartition("/")[2]
            through = [] if name in seen or "properties" in parts[name] else [parts[name]]
            found += [name, *(ref for part in through for ref in _refs(part, parts, (*seen, name)))]
        elif isinstance(value, (dict, list)) and key != "discriminator":
            found += _refs(value, parts, seen)
    return list(dict.fromkeys(found))


def _heading(name: str) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").strip()
    return words.removesuffix(" Spec").capitalize()


def _described(part: Json) -> str:
    described = str(part.get("description", "")).strip()
    return f"{described}\n\n" if described else ""


def _keys(part: Json, parts: Json, *, only: set[str] | None = None, without: Any = ()) -> str:
    rows = ["| key | value | default | |", "|---|---|---|---|"]
    for key, schema in part.get("properties", {}).items():
        if key in without or (only is not None and key not in only):
            continue
        required = key in part.get("required", ())
        default = "" if schema.get("default") is None else _code(json.dumps(schema["default"]))
        shown = f"**`{key}`**" if required else f"`{key}`"
        meaning = _cell(schema.get("description", ""))
        rows.append(f"| {shown} | {_type(schema, parts)} | {default} | {meaning} |")
    return "\n".join(rows) + "\n"


def _type(schema: Any, parts: Json, depth: int = 0) -> str:
    if any(_JSON_SCHEMA in str(one.get("$ref")) for one in schema.get("anyOf", ())):
        return "`string`, `integer`, ..., `[string]`, ..., or a JSON Schema"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        heading = _heading(name).lower()
        if "properties" in parts[name]:
            return f"[{heading}](#{heading.replace(' ', '-')})"
        return _type(parts[name], parts, depth + 1) if depth < 4 else "value"
    for union in ("anyOf", "oneOf"):
        if union in schema:
            each = dict.fromkeys(_type(one, parts, depth + 1) for one in schema[union])
            shown = [one for one in each if one != "null"]
            return " or ".join(shown) if len(shown) < 8 else "a node"
    if "enum" in schema:
        return ", ".join(_code(json.dumps(one).strip('"')) for one in schema["enum"])
    if "const" in schema:
        return _code(json.dumps(schema["const"]).strip('"'))
    kind = schema.get("type", "value")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}), parts, depth + 1)}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"mapping to {_type(schema['additionalProperties'], parts, depth + 1)}"
    return {"object": "mapping", "boolean": "true or false"}.get(kind, str(kind))


# -- Python ----------------------------------------------------------------------------------------


def python_api() -> str:
    """The public names, with signatures and docstrings."""
    text = (
        "# Python API\n\nThe public modules. Names that are not here may change in any version.\n"
    )
    for name in PUBLIC:
        module = importlib.import_module(name)
        text += f"\n## {name}\n\n{_summary(module)}\n"
        if name == "weft.errors":
            text += "\nEvery error of [the tree](errors.md) is importable from here.\n"
            continue
        if name == "weft.events":
            text += "\n[Events](events.md) lists the classes and their fields.\n"
            continue
        for each in sorted(module.__all__, key=str.lower):
            if not each.startswith("__"):
                text += "\n" + _entry(name, each, getattr(module, each))
    return text


def _entry(module: str, name: str, value: Any) -> str:
    if inspect.isclass(value):
        text = f"### {module}.{name}\n\n```python\n{_signature(name, value)}\n```\n\n{_text(value)}"
        for member, function in _members(value):
            text += f"\n#### {name}.{member}\n\n```python\n{_signature(member, function)}\n```\n\n"
            text += _text(function)
        return text
    if callable(value):
        return f"### {module}.{name}\n\n```python\n{_signature(name, value)}\n```\n\n{_text(value)}"
    return f"### {module}.{name}\n\n{_code(repr(value))}\n"


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that weft wrote, those of the class itself first."""
    names: dict[str, Any] = {}
    for base in kind.__mro__:
        if base.__module__.startswith("weft"):
            for name, value in vars(base).items():
                function = value.fget if isinstance(value, property) else value
                function = getattr(function, "__func__", function)
                if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
                    names.setdefault(name, value)
    yield from names.items()


def _signature(name: str, value: Any) -> str:
    if isinstance(value, property):
        returns = inspect.signature(value.fget).return_annotation
        return f"{name}: {_annotation(returns)}"
    function = getattr(value, "__func__", value)
    try:
        signature = inspect.signature(function)
    except ValueError:
        return name
    parameters = [
        each for each in signature.parameters.values() if each.name not in ("self", "cls")
    ]
    shown = [_parameter(each) for each in _separated(parameters)]
    prefix = "class " if inspect.isclass(value) else "def "
    if inspect.iscoroutinefunction(function):
        prefix = "async def "
    returns = signature.return_annotation
    end = (
        ""
        if returns is signature.empty or inspect.isclass(value)
        else f" -> {_annotation(returns)}"
    )
    line = f"{prefix}{name}({', '.join(shown)}){end}"
    if len(line) <= 100:
        return line
    inner = "".join(f"    {each},\n" for each in shown)
    return f"{prefix}{name}(\n{inner}){end}"


def _separated(parameters: list[inspect.Parameter]) -> Iterator[inspect.Parameter | str]:
    """The parameters with `/` and `*` where they belong."""
    before = None
    for each in parameters:
        if before is inspect.Parameter.POSITIONAL_ONLY and each.kind is not before:
            yield "/"
        if each.kind is each.KEYWORD_ONLY and before not in (
            each.KEYWORD_ONLY,
            each.VAR_POSITIONAL,
        ):
            yield "*"
        yield each
        before = each.kind
    if before is inspect.Parameter.POSITIONAL_ONLY:
        yield "/"


def _parameter(parameter: inspect.Parameter | str) -> str:
    if isinstance(parameter, str):
        return parameter
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = stars + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        text += f" = {_default(parameter.default)}"
    return text


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "object")


def _default(default: Any) -> str:
    if default is ... or "factory" in repr(default):
        return "..."
    if dataclasses.is_dataclass(default):
        return f"{type(default).__name__}()"
    shown = repr(default)
    return "..." if " at 0x" in shown or shown.startswith("<") else shown


def _text(value: Any) -> str:
    """A docstring: its first paragraph as text, the rest as it is written."""
    documented = inspect.getdoc(value.fget if isinstance(value, property) else value) or ""
    first, _, rest = documented.partition("\n\n")
    text = " ".join(first.split()) + "\n"
    return text + (f"\n```text\n{rest.rstrip()}\n```\n" if rest.strip() else "")


def _summary(module: Any) -> str:
    return " ".join((module.__doc__ or "").partition("\n\n")[0].split())


# -- decoders, strategies, agents, errors ----------------------------------------------------------


def _decoders() -> list[Json]:
    listed: list[Json] = json.loads(CliRunner().invoke(app, ["decoders", "--json"]).stdout)
    return listed


def decoders() -> str:
    """Both tables of `weft decoders`."""
    listed = _decoders()
    text = "# Decoders\n\nWhat `decode:` of a node or a model takes, and `--decode`. "
    text += (
        "[Speculative decoding](../speculative.md) and [diffusion](../diffusion.md) explain them.\n"
    )
    text += "\n## Speculative decoders\n\nA lossless one writes the tokens of plain decoding.\n\n"
    text += "| decoder | text | what it does | needs | options |\n|---|---|---|---|---|\n"
    for each in listed:
        if each["kind"] == "autoregressive":
            kept = "the same" if each["lossless"] else "**may differ**"
            text += _row(
                _code(each["name"]), kept, each["summary"], each["needs"] or "nothing", _all(each)
            )
    text += "\n## Decoders of diffusion models\n\n`sequential` is plain decoding. "
    text += "All others may write another text, and are requested by name.\n\n"
    text += "| decoder | what it does | needs | options |\n|---|---|---|---|\n"
    for each in listed:
        if each["kind"] == "diffusion":
            text += _row(
                _code(each["name"]), each["summary"], each["needs"] or "nothing", _all(each)
            )
    return text


def _all(decoder: Json) -> str:
    return ", ".join(_code(option) for option in decoder["options"])


def strategies() -> str:
    """The strategies and their options, and the agents."""
    text = "# Strategies and agents\n\n## Strategies\n\nWhat `think:` of a node takes, and "
    text += "`weft think --strategy`. [Thinking](../reasoning.md) explains them.\n\n"
    text += "| strategy | what it does | published as | exact with | needs | settings |\n"
    text += "|---|---|---|---|---|---|\n"
    for name, entry in STRATEGIES.items():
        exact = entry.exact or "no model: approximate"
        cells = (entry.summary, entry.source, exact, entry.needs, _settings(name))
        text += _row(_code(name), *cells)
    text += "\n## Options of a strategy\n\n| option | default |\n|---|---|\n"
    options = ThinkOptions()
    for name in (field.name for field in dataclasses.fields(options)):
        text += _row(_code(name), _code(repr(getattr(options, name))))
    text += "\n## Agents\n\nWhat `agent:` of a node takes, and `weft ask --agent`. "
    text += (
        "[Plans and agents](../planning.md) explains them.\n\n| agent | what it does |\n|---|---|\n"
    )
    for name, summary in _agents().items():
        text += _row(_code(name), summary)
    return text


def _settings(strategy: str) -> str:
    """The names that a strategy takes, which its error for another one lists."""
    try:
        check_options(strategy, ThinkOptions(settings={"?": None}))
    except BuildError as error:
        known = (error.hint or "").partition("there are: ")[2]
        return ", ".join(_code(name) for name in known.split(", ")) if known else ""
    raise AssertionError(f"{strategy} takes any setting")


def _agents() -> dict[str, str]:
    """The agents that `weft ask --help` lists."""
    listed = _help(("ask",)).partition("Agents:\n")[2].partition("\n\n")[0]
    rows = (line.split(maxsplit=1) for line in listed.splitlines())
    return {name: summary.strip() for name, summary in rows}


def events() -> str:
    """The events of a run, each with its fields."""
    text = "# Events\n\nWhat `Flow.stream` yields and `listeners` get: classes of `weft.events`, "
    text += "frozen, in the order in which they happen. `at_s` is seconds since the run started. "
    text += "[Events of a run](../workflows.md#events-of-a-run) shows how to read them.\n"
    described = [*get_args(weft.events.Event), weft.events.NodeInfo, weft.events.Outcome]
    for kind in described:
        fields = ", ".join(
            f"{each.name}: {_annotation(each.type)}" for each in dataclasses.fields(kind)
        )
        text += f"\n## {kind.__name__}\n\n`{fields}`\n\n{inspect.getdoc(kind)}\n"
    return text


def errors() -> str:
    """The tree of errors, and what each of them means."""
    module = importlib.import_module("weft.errors")
    kinds = [getattr(module, name) for name in module.__all__]
    raised = [kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, Exception)]
    text = "# Errors\n\nEvery error that weft raises on purpose: "
    text += "`from weft.errors import ToolRaised`. Each has a `message`, a `hint` what to do next, "
    text += "the `node` where it happened, and `retryable`.\n"
    text += (
        "\n## The tree\n\n```text\n" + "".join(_tree(module.WeftError, raised, "", "")) + "```\n"
    )
    text += "\n## What each means\n\n| error | meaning | retryable |\n|---|---|---|\n"
    for kind in sorted(raised, key=lambda kind: kind.__name__):
        meaning = " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())
        text += _row(_code(kind.__name__), meaning, "yes" if kind.retryable is True else "")
    return text


def _tree(kind: type, known: list[type], lead: str, below: str) -> Iterator[str]:
    yield f"{lead}{kind.__name__}\n"
    children = [each for each in known if kind in each.__bases__]
    for child in children:
        last = child is children[-1]
        yield from _tree(
            child, known, below + ("└── " if last else "├── "), below + ("    " if last else "│   ")
        )


def _row(*cells: str) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |\n"


def _cell(text: str) -> str:
    """A text on one line; outside of code, no sign of it is Markdown's or HTML's."""
    parts = " ".join(text.split()).split("`")
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts).replace("\\|", "|").replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{text}`"


def main() -> None:
    """Write the pages, or say which differ."""
    FOLDER.mkdir(exist_ok=True)
    stale = []
    for name, text in pages().items():
        path = FOLDER / name
        if path.is_file() and path.read_text("utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(text, "utf-8")
    if stale and "--check" in sys.argv:
        sys.exit(f"out of date: {', '.join(stale)}; run python scripts/reference.py")


if __name__ == "__main__":
    main()
