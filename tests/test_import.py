"""Importing weft is light and quiet."""

import os
import subprocess
import sys
from pathlib import Path


def test_importing_weft_loads_no_heavy_library() -> None:
    heavy = ["torch", "transformers", "openai", "httpx2", "rich", "typer", "numpy", "networkx"]
    code = f"import sys, weft; print([name for name in {heavy!r} if name in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
    assert found.stderr == ""


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
