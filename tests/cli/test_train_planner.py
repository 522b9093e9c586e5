"""`weft train-planner` as a person types it, on a tiny model, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("torch")

from tests.cli.hostile import FORBIDDEN
from tests.serving.local.conftest import tiny_path
from weft.cli.main import app

__all__ = ["tiny_path"]


def weft(*words: str) -> Result:
    return CliRunner().invoke(app, ["train-planner", *words])


def items(tmp_path: Path, count: int = 60) -> Path:
    file = tmp_path / "calls.jsonl"
    with file.open("w") as out:
        for number in range(count):
            name = f"tool_{number % 20}"
            schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
            item = {
                "query": f"Do {name} with {number}",
                "tools": [{"name": name, "description": "Does it.", "parameters": schema}],
                "calls": [{"name": name, "arguments": {"n": number}}],
                "ask": [],
            }
            out.write(json.dumps(item) + "\n")
    return file


def test_a_real_one_from_items_to_a_folder(tiny_path: Path, tmp_path: Path) -> None:
    words = ["--data", str(items(tmp_path)), "--model", str(tiny_path), "--texts", "8",
             "--out", str(tmp_path / "out"), "--threads", "1", "--rank", "4", "--keep-every", "3",
             "--held-out", "20", "--lookups", "3"]  # fmt: skip
    ran = weft(*words)
    assert ran.exit_code == 0, ran.output
    assert f"the planner is in {tmp_path / 'out'}" in ran.stdout
    assert "turns with tools that it has never seen" in ran.stdout
    assert (tmp_path / "out" / "adapter.safetensors").exists()
    config = json.loads((tmp_path / "out" / "config.json").read_text())["weft_adapter"]
    assert config["plan_form"] == "compact-1"
    assert 0 < config["trained"]["test_turns"] < config["trained"]["turns"]
    again = weft(*words)
    assert again.exit_code == 2
    assert "holds a model already" in again.stderr


def test_a_broken_line_is_told_with_its_number(tiny_path: Path, tmp_path: Path) -> None:
    file = items(tmp_path, 2)
    with file.open("a") as out:
        out.write('{"query": "\\u001b[31m", "tools": 5}\n')
    ran = weft("--data", str(file), "--model", str(tiny_path), "--out", str(tmp_path / "out"))
    assert ran.exit_code == 2
    assert f"{file.name}, line 3: tools is a list, not 5" in " ".join(ran.stderr.split())
    assert not any(each in ran.stderr for each in FORBIDDEN)


def test_too_few_tools_are_told(tiny_path: Path, tmp_path: Path) -> None:
    file = items(tmp_path, 1)
    ran = weft("--data", str(file), "--model", str(tiny_path), "--out", str(tmp_path / "out"))
    assert ran.exit_code == 2
    assert "to test on" in " ".join(ran.stderr.split())
