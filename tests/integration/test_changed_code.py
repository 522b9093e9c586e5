"""Code that changes between the parts of a run, wherever it lies: refused, until it is accepted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = {
    "__init__.py": "",
    "rates.py": "RATE = 10\n",
    "t.py": '''
import weft
from mypkg.rates import RATE

@weft.tool
def f(item: int) -> int:
    """Convert."""
    return item * RATE
''',
}
TOOLS = '''
import weft
from .names import title

@weft.tool
def g(item: int) -> str:
    """Name it."""
    return title(item)
'''
FLOW = """
name: half
tools: {f: "mypkg.t:f", g: "./tools.py:g"}
nodes:
  first: {tool: f, with: {item: 1}}
  name: {tool: g, with: {item: 1}}
  sure: {ask: "Go on?", schema: boolean, after: [first, name]}
  second: {tool: f, with: {item: 2}, after: sure}
outputs: {first: "{{ first }}", second: "{{ second }}", name: "{{ name }}"}
"""
WEFT = [sys.executable, "-c", "from weft.cli.entry import run; run()"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "half.yaml").write_text(FLOW)
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "names.py").write_text("def title(item):\n    return f'number {item}'\n")
    for name, text in PACKAGE.items():
        (tmp_path / "lib" / "mypkg").mkdir(parents=True, exist_ok=True)
        (tmp_path / "lib" / "mypkg" / name).write_text(text)
    assert weft(tmp_path, "run", "half.yaml", "--run-id", "one").returncode == 4
    return tmp_path


def weft(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "WEFT_JOURNAL": str(folder / "journal.sqlite"),
        "PYTHONPATH": str(folder / "lib"),
    }
    command = [*WEFT, *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_a_module_that_a_tool_imports_is_watched(folder: Path) -> None:
    edit(folder / "tools.py", '"""Name it."""', "# It has a name.")
    edit(folder / "names.py", "item}'\n", "item}'\n\n\ndef unused():\n    pass\n")
    edit(folder / "lib/mypkg/rates.py", "10", "100")
    refused = weft(folder, "resume", "one", "--answer", "sure=y")
    assert refused.returncode == 2, refused
    assert "changed mypkg.t:f" in refused.stderr
    assert "tools.py:g" not in refused.stderr
    verdicts = {line.split()[0]: line.split()[1:] for line in refused.stderr.splitlines() if line}
    assert verdicts["first"][0] == verdicts["second"][0] == "changed"
    assert verdicts["name"][0] == "unchanged"
    accepted = weft(folder, "resume", "one", "--answer", "sure=y", "--accept-changes")
    assert accepted.returncode == 0, accepted
    assert "first\n100\n\nsecond\n200\n\nname\nnumber 1\n" in accepted.stdout
