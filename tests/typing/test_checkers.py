"""What type checkers say of programs: of good ones nothing, of bad ones the line of the mistake."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
GOOD = sorted((HERE / "good").glob("*.py"))
BAD = sorted((HERE / "bad").glob("*.py"))
MARK = "# error"
Lines = set[tuple[str, int]]


def marked() -> Lines:
    """The lines of bad programs at which a checker must refuse them."""
    return {
        (f"{path.parent.name}/{path.name}", number)
        for path in BAD
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.endswith(MARK)
    }


def place(file: str, line: int) -> tuple[str, int]:
    path = Path(file)
    return f"{path.parent.name}/{path.name}", line


def output_of(*command: str) -> str:
    """What a checker writes. Raises: `AssertionError` when it did not come to a judgement."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr + done.stdout
    return done.stdout


def refused_by_mypy() -> Lines:
    files = (str(path) for path in (*GOOD, *BAD))
    settings = ("--strict", "--output=json", "--warn-unreachable")
    found = [json.loads(line) for line in output_of("mypy", *settings, *files).splitlines()]
    return {place(each["file"], each["line"]) for each in found if each["severity"] == "error"}


def refused_by_pyright() -> Lines:
    where = ("-p", str(HERE / "pyrightconfig.json"), "--pythonpath", sys.executable)
    found = json.loads(output_of("basedpyright", *where, "--outputjson"))
    assert found["summary"]["filesAnalyzed"] >= len(GOOD) + len(BAD)
    return {
        place(each["file"], each["range"]["start"]["line"] + 1)
        for each in found["generalDiagnostics"]
        if each["severity"] == "error"
    }


def test_there_are_enough_programs() -> None:
    assert len(marked()) >= 30


def test_mypy_refuses_the_marked_lines_and_no_others() -> None:
    assert refused_by_mypy() == marked()


@pytest.mark.skipif(not importlib.util.find_spec("basedpyright"), reason="needs basedpyright")
def test_pyright_refuses_the_marked_lines_and_no_others() -> None:
    assert refused_by_pyright() == marked()
