"""`weft diff A.yaml B.yaml`: what differs between two workflows, but for layout and comments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import go_into
from tests.cli.command_line import typed as weft

FLOW = """\
# a comment
name: notes
models: {small: "local:tiny"}
nodes:
  a: {model: small, prompt: One}
outputs: {a: "{{ a }}"}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go_into(tmp_path, monkeypatch)
    (tmp_path / "a.yaml").write_text(FLOW)
    (tmp_path / "b.yaml").write_text(FLOW.replace("One", "Two"))
    (tmp_path / "c.yaml").write_text(FLOW.replace("# a comment\n", "").replace('"', "'"))
    return tmp_path


def test_what_differs_is_shown() -> None:
    done = weft("diff", "a.yaml", "b.yaml")
    assert done.exit_code == 1
    assert "-  a: {model: small, prompt: One}" in done.stdout
    assert "+  a: {model: small, prompt: Two}" in done.stdout
    data = json.loads(weft("diff", "a.yaml", "b.yaml", "--json").stdout)
    assert not data["same"]
    assert data["lines"][0].startswith("--- a.yaml")


def test_layout_is_no_difference() -> None:
    done = weft("diff", "a.yaml", "c.yaml")
    assert (done.exit_code, done.stdout) == (0, "")


def test_a_file_that_is_no_workflow_is_refused(folder: Path) -> None:
    (folder / "b.yaml").write_text("name: [")
    done = weft("diff", "a.yaml", "b.yaml")
    assert done.exit_code != 0
    assert "b.yaml:1" in done.output


def test_a_file_and_a_run_are_not_compared() -> None:
    assert weft("diff", "a.yaml", "last").exit_code != 0


def test_a_missing_file_is_named() -> None:
    done = weft("diff", "a.yaml", "none.yaml")
    assert done.exit_code != 0
    assert "there is no file none.yaml" in done.output
