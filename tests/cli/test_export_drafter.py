"""`weft export-drafter` as a person types it: from a training to a folder for vLLM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("torch")

from tests.serving.local.conftest import tiny_path
from weft.cli.main import app

__all__ = ["tiny_path"]


def weft(*words: str) -> Result:
    return CliRunner().invoke(app, [*words])


def head(tiny_path: Path, folder: Path, form: int) -> str:
    prompts = folder / "prompts.txt"
    prompts.write_text("the fox\nthe dog\nthe other\n", "utf-8")
    few = ["--steps", "2", "--max-tokens", "6", "--set", "heads=2", "--threads", "1"]
    out = folder / f"head-{form}"
    told = ["--data", str(prompts), "--out", str(out), "--set", f"form={form}"]
    trained = weft("train-drafter", "medusa", "--model", str(tiny_path), *told, *few)
    assert trained.exit_code == 0, trained.output
    return str(out)


def test_a_head_that_was_trained_for_it_is_written(tiny_path: Path, tmp_path: Path) -> None:
    ours, theirs = head(tiny_path, tmp_path, 2), tmp_path / "for-vllm"
    asked = ["export-drafter", ours, "--model", str(tiny_path), "--out", str(theirs)]
    written = weft(*asked, "--json")
    assert written.exit_code == 0, written.output
    told = json.loads(written.stdout)
    assert told == {"kind": "medusa", "folder": str(theirs), "decode": f"medusa:{theirs}"}
    config = json.loads((theirs / "config.json").read_text("utf-8"))
    assert (config["model_type"], config["num_heads"]) == ("medusa", 2)
    again = weft(*asked)
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    plainly = weft(*asked[:-1], str(tmp_path / "another"))
    assert f"--decode medusa:{tmp_path / 'another'}" in plainly.stdout


def test_a_head_of_weft_s_own_form_says_how_to_train_another(
    tiny_path: Path, tmp_path: Path
) -> None:
    ours = head(tiny_path, tmp_path, 1)
    refused = weft(
        "export-drafter", ours, "--model", str(tiny_path), "--out", str(tmp_path / "new")
    )
    assert refused.exit_code == 2
    assert "--set form=2" in refused.stderr
    assert not (tmp_path / "new").exists()
