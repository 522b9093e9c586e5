"""Importing weft is light and quiet, and what it does imports what it uses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_MODELS = ("torch", "transformers", "llguidance", "openai", "httpx2", "vllm", "numpy", "networkx")
_SERVERS = ("mcp", "starlette", "uvicorn", "psycopg", "opentelemetry", "prometheus_client")
_ROOMS = (
    "weft.planner",
    "weft.reasoning",
    "weft.decoding",
    "weft.serving.local",
    "weft.agents.loops",
)
_COMPILER = ("weft.workflow.compile", "weft.workflow.document", "weft.engine", "jinja2", "pydantic")
_SMALL = """\
name: small
tools: {double: "./tools.py:double"}
inputs: {x: {type: integer, default: 1}}
nodes:
  a: {tool: double, with: {x: "{{ x }}"}}
  b: {value: "{{ a + 1 }}"}
outputs: {b: "{{ b }}"}
"""
_TOOLS = """\
import weft

@weft.tool
async def double(x: int) -> int:
    return 2 * x
"""
_PROGRAM = """\
import weft

async def double(x: int) -> int:
    return 2 * x

flow = weft.Flow("program")
flow.output(a=flow.tool(double, x=1))
assert flow.run_sync()["a"] == 2
"""


def imported(code: str, folder: Path) -> set[str]:
    """The modules that a fresh process has once it did that."""
    telling = f"{code}\nimport sys; print('MODULES', *sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", telling],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**os.environ, "WEFT_JOURNAL": str(folder / "runs.sqlite")},
    )
    return set(found.stdout.splitlines()[-1].split()[1:])


def command(*words: str) -> str:
    """A program that gives the command line these words, and goes on."""
    return (
        f"import sys; sys.argv = ['weft', *{words!r}]\n"
        "from weft.cli.entry import run\n"
        "try: run()\n"
        "except SystemExit as end: assert not end.code, end.code"
    )


@pytest.mark.parametrize(
    ("code", "none_of"),
    [
        ("import weft", (*_MODELS, *_SERVERS, *_ROOMS, *_COMPILER, "asyncio", "rich", "typer")),
        (command("--version"), (*_MODELS, *_SERVERS, *_ROOMS, *_COMPILER, "asyncio", "rich")),
        (command("run", "small.yaml", "--json", "--quiet"), (*_MODELS, *_SERVERS, *_ROOMS, "rich")),
        (command("run", "small.yaml"), (*_MODELS, *_SERVERS, *_ROOMS, "rich.live")),
        (command("check", "small.yaml"), (*_MODELS, *_SERVERS, *_ROOMS)),
        (_PROGRAM, (*_MODELS, *_SERVERS, *_ROOMS, "rich", "typer")),
    ],
    ids=["import", "version", "run-json", "run", "check", "program"],
)
def test_only_what_is_used_is_imported(code: str, none_of: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(_SMALL)
    (tmp_path / "tools.py").write_text(_TOOLS)
    assert not imported(code, tmp_path).intersection(none_of)


def test_importing_weft_is_quiet() -> None:
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import weft"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == found.stderr == ""


def test_looking_at_a_journal_loads_no_compiler(tmp_path: Path) -> None:
    code = (
        "import sys; from weft.cli.main import app; app(['runs'], standalone_mode=False); "
        "heavy = ('weft.workflow.compile', 'jinja2', 'jsonschema_rs'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "WEFT_JOURNAL": str(tmp_path / "runs.sqlite")},
    )
    assert found.stdout.splitlines()[-1] == "[]"


def test_every_package_of_workflows_can_be_the_first_that_is_loaded() -> None:
    code = (
        "import os, pkgutil, importlib\n"
        "import pydantic, jinja2, jsonschema_rs, networkx\n"
        "import weft.workflow\n"
        "for found in pkgutil.iter_modules(weft.workflow.__path__, 'weft.workflow.'):\n"
        "    if not found.ispkg: continue\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        importlib.import_module(found.name)\n"
        "        os._exit(0)\n"
        "    if os.waitpid(child, 0)[1]:\n"
        "        print(found.name)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "", found.stderr
