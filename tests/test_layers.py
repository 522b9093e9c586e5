"""Imports go downwards only, and heavy or printing libraries stay in the room that owns them."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "weft"
MAY_IMPORT = {
    "cli": {
        *("optimisation", "evaluation", "workflow", "agents", "planner", "reasoning", "durability"),
        *("engine", "validation", "serving", "training", "decoding", "cluster", "core"),
    },
    "evaluation": {
        *("workflow", "agents", "reasoning", "durability", "engine", "validation", "core"),
    },
    "workflow": {
        *("agents", "planner", "reasoning", "durability", "engine", "validation", "core"),
        *("serving", "training", "decoding", "cluster"),
    },
    "optimisation": {
        *("evaluation", "workflow", "agents", "planner", "reasoning", "durability", "engine"),
        *("validation", "core"),
    },
    "cluster": {"agents", "durability", "engine", "validation", "serving", "core"},
    "agents": {"planner", "reasoning", "durability", "engine", "validation", "core"},
    "planner": {"durability", "engine", "core"},
    "reasoning": {"engine", "core"},
    "durability": {"engine", "core"},
    "engine": {"core"},
    "serving": {"decoding", "validation", "core"},
    "training": {"decoding", "core"},
    "decoding": {"core"},
    "validation": {"core"},
    "testing": {"core"},
    "core": set(),
}
OWNERS = {
    "typer": {"cli"},
    "rich": {"cli"},
    "torch": {"serving", "training", "decoding"},
    "transformers": {"serving", "training", "decoding"},
    "llguidance": {"serving"},
    "httpx2": {"serving", "agents"},
    "httpcore2": {"agents"},
    "mcp": {"agents", "workflow"},
    "openai": {"serving"},
    "anthropic": {"serving"},
    "google": {"serving"},
    "vllm": {"serving"},
    "huggingface_hub": {"serving"},
    "gguf": {"serving"},
    "weft_weights": {"decoding"},
    "psutil": {"serving"},
    "ray": {"cluster"},
    "starlette": {"serving"},
    "uvicorn": {"serving"},
    "prometheus_client": {"serving"},
    "opentelemetry": {"serving"},
    "psycopg": {"workflow"},
    "psycopg_pool": {"workflow"},
    "obstore": {"workflow"},
    "pytest": {"weft"},
    "ruamel": {"workflow", "agents"},
    "jinja2": {"workflow", "serving"},
    "jsonschema": set(),
    "jsonschema_rs": {"validation"},
    "referencing": set(),
    "pyarrow": {"evaluation"},
    "datasets": {"evaluation"},
    "optuna": {"optimisation"},
    "pydantic": {"cli", "evaluation", "workflow", "agents", "serving", "optimisation"},
    "networkx": {"cli", "workflow", "agents", "planner", "reasoning", "durability", "engine"},
}
FILES = sorted(ROOT.rglob("*.py"))


@cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            assert node.module is not None
            if node.module == "weft":
                yield from ((node.lineno, f"weft.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, node.module


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0] if path.parent != ROOT else "weft"


@pytest.mark.parametrize("here", sorted({room(path) for path in FILES}))
def test_imports_go_downwards(here: str) -> None:
    fine = {here, "__version__"} | MAY_IMPORT.get(here, set(MAY_IMPORT))
    wrong = []
    for path in FILES:
        for line, name in imports(path) if room(path) == here else ():
            parts, place = name.split("."), f"{path.relative_to(ROOT)}:{line}"
            if parts[0] == "weft" and len(parts) > 1:
                if parts[1] not in fine:
                    wrong.append(f"{place}: {here} must not import {name}")
            elif here not in OWNERS.get(parts[0], {here}):
                wrong.append(f"{place}: {parts[0]} belongs to {OWNERS[parts[0]]}")
    assert not wrong, "\n".join(wrong)


def test_what_a_bare_install_runs_needs_the_standard_library_only() -> None:
    import sys

    allowed = set(sys.stdlib_module_names) | {"weft"}
    foreign = {
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in FILES
        if room(path) in {"core", "engine", "durability", "testing"}
        for line, name in imports(path)
        if name.split(".")[0] not in allowed
    }
    assert not foreign, "\n".join(sorted(foreign))


def test_evals_are_imported_by_nothing() -> None:
    assert not [
        f"{path}:{line}"
        for path in FILES
        for line, name in imports(path)
        if name.split(".")[0] in {"evals", "tests", "examples"}
    ]


def test_files_stay_small() -> None:
    """A file is a unit that one opens for a reason: at most 480 lines, half of them below 180."""
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert not {str(path): count for path, count in lines.items() if count > 480}
    assert sorted(lines.values())[len(lines) // 2] <= 180
