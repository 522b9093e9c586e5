"""What users name stays: Python names with their parameters, keys of workflow files, decoders,
strategies, errors. The help of every command has golden files of its own.

`python -m tests.test_public_surface` writes the golden file anew; what goes from it is a breaking
change and wants a line in CHANGELOG.md.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from typer.testing import CliRunner

import weft
import weft.errors
import weft.events
import weft.pytest_plugin
import weft.serve
import weft.testing
from weft.cli.main import app

GOLDEN: Final = Path(__file__).parent / "golden" / "public_surface.txt"
PUBLIC: Final = (weft, weft.errors, weft.events, weft.serve, weft.testing)


def surface() -> str:
    """One line for each thing that a user may name, sorted within its kind."""
    lines = [
        *(line for module in PUBLIC for line in sorted(_python(module))),
        *(f"pytest {name}" for name in sorted(vars(weft.pytest_plugin)) if name[:5] == "weft_"),
        *sorted(_keys(json.loads(_printed("schema")))),
        *sorted(_decoders(json.loads(_printed("decoders", "--json")))),
        *(f"strategy {name}" for name in _first_column(_printed("think", "--list"))),
    ]
    return "\n".join(lines) + "\n"


def test_nothing_that_a_user_names_is_gone() -> None:
    assert surface() == GOLDEN.read_text("utf-8")


def _python(module: ModuleType) -> Iterator[str]:
    for name in module.__all__:
        value = getattr(module, name)
        yield f"{module.__name__}.{name}{_parameters(value)}"
        if inspect.isclass(value) and not issubclass(value, Exception):
            for member in dir(value):
                if not member.startswith("_"):
                    found = inspect.getattr_static(value, member)
                    yield f"{module.__name__}.{name}.{member}{_parameters(found)}"


def _parameters(value: Any) -> str:
    """Names of parameters and which of them may be left out, without types."""
    if isinstance(value, (classmethod, staticmethod)):
        value = value.__func__
    if not callable(value):
        return ""
    try:
        signature = inspect.signature(value)
    except ValueError:
        return "(...)"
    said = [
        f"{'*' * _stars(one)}{one.name}{'' if one.default is one.empty else '=...'}"
        for one in signature.parameters.values()
        if one.name not in ("self", "cls")
    ]
    return f"({', '.join(said)})"


def _stars(one: inspect.Parameter) -> int:
    return {one.VAR_POSITIONAL: 1, one.VAR_KEYWORD: 2}.get(one.kind, 0)


def _keys(schema: Mapping[str, Any], at: str = "workflow") -> set[str]:
    """Every key of a workflow file, by the definition that it stands in, and every fixed value."""
    found = {f"{at} = {value}" for value in schema.get("enum", [])}
    if "const" in schema:
        found.add(f"{at} = {schema['const']}")
    for name, inner in schema.get("$defs", {}).items():
        found |= _keys(inner, f"workflow {name}")
    for name, inner in schema.get("properties", {}).items():
        found |= {f"{at}.{name}"} | _keys(inner, f"{at}.{name}")
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            found |= _keys(schema[word], f"{at}[]")
    for word in ("anyOf", "oneOf", "allOf"):
        for inner in schema.get(word, []):
            found |= _keys(inner, at)
    return found


def _decoders(decoders: list[Mapping[str, Any]]) -> Iterator[str]:
    for one in decoders:
        kind = f"{one['kind']}, {'lossless' if one['lossless'] else 'lossy'}"
        yield f"decoder {one['name']} ({kind}): {', '.join(sorted(one['options']))}"


def _first_column(table: str) -> list[str]:
    return re.findall(r"^([a-z][\w-]*)\s{2,}", table, flags=re.MULTILINE)[1:]


def _printed(*arguments: str) -> str:
    ended = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})
    assert ended.exit_code == 0, ended.output
    return ended.stdout


if __name__ == "__main__":
    GOLDEN.write_text(surface(), "utf-8")
