"""Programs that users of other frameworks write, in weft: each returns what its peers return."""

from __future__ import annotations

import asyncio
import importlib
import shutil
from pathlib import Path

import pytest

from evals.engine.peers import ROOT
from evals.ports.__main__ import evaluate, program
from evals.ports.jobs import JOBS, lay_out
from evals.ports.lines import code_lines
from evals.ports.script import SCRIPTS
from evals.ports.weft_model import scripted


@pytest.mark.parametrize("job", JOBS)
def test_a_program_of_weft_does_its_job(
    job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_JOURNAL", str(tmp_path / "journal.sqlite"))
    lay_out(tmp_path)
    module = importlib.import_module(f"evals.ports.weft_programs.{job}")
    assert asyncio.run(module.run(scripted(SCRIPTS[job]), tmp_path)) == JOBS[job].result


@pytest.mark.parametrize("job", JOBS)
def test_programs_import_public_names_only(job: str) -> None:
    lines = program("weft", job).read_text("utf-8").splitlines()
    own = [line for line in lines if "import" in line and "weft" in line]
    modules = {line.split()[1] for line in own}
    assert modules <= {"weft", "weft.testing", "weft.serve", "weft.errors", "weft.events"}


def test_lines_of_code_are_neither_blank_nor_comments_nor_docstrings(tmp_path: Path) -> None:
    file = tmp_path / "some.py"
    file.write_text(
        '"""Of it."""\n\n# why\nX = """\ntext\n"""\n\n\ndef f():\n    """Of f."""\n    return X\n'
    )
    assert code_lines(file) == 5


@pytest.mark.slow
def test_every_program_of_a_peer_does_its_job() -> None:
    if not (ROOT / ".venv-peers").exists() and shutil.which("pip") is None:
        pytest.skip("the peers cannot be installed")
    rows = evaluate(rounds=1)
    assert {row.system for row in rows} == {"weft", "langgraph", "pydantic"}
