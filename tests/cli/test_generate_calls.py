"""`weft generate-calls` as a person would type it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from weft.agents.calls import STYLES, compose_tools
from weft.cli.main import app

TOOLS = '''
import weft

@weft.tool
def price_of(item: str) -> float:
    """Retrieve the price of an item."""
    if "e" in item:
        raise LookupError(item)
    return 2.5

@weft.tool
def weather(city: str, days: int = 1) -> dict[str, str]:
    """Retrieve the weather of a city."""
    return {"city": city}
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [json.dumps(tool.document()) for tool in compose_tools(60, 1)]
    (tmp_path / "tools.jsonl").write_text("\n".join(rows), "utf-8")
    (tmp_path / "own_tools.py").write_text(TOOLS, "utf-8")
    return tmp_path


def weft(*words: str) -> Result:
    return CliRunner().invoke(app, ["generate-calls", *words])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_items_have_the_documented_form_and_all_styles(folder: Path) -> None:
    result = weft("--tools", "tools.jsonl", "--out", "a.jsonl", "--n", "120", "--variants", "50")
    assert result.exit_code == 0, result.output
    items = lines(folder / "a.jsonl")
    assert len(items) == 120
    keys = {"query", "tools", "calls", "ask", "style", "why", "digest"}
    assert {frozenset(item) for item in items} == {frozenset(keys)}
    assert {item["style"] for item in items} == set(STYLES) - {"chained"}
    assert "no items of chained" in result.output


def test_the_same_seed_gives_the_same_file(folder: Path) -> None:
    for name in ("a", "b"):
        assert weft("--tools", "tools.jsonl", "--out", name, "--n", "40").exit_code == 0
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes()


def test_tools_of_the_test_part_are_never_in_the_training_part(folder: Path) -> None:
    common = ("--tools", "tools.jsonl", "--n", "40", "--split", "60", "--composed", "40")
    assert weft(*common, "--out", "train").exit_code == 0
    assert weft(*common, "--out", "test", "--test").exit_code == 0
    train, test = (
        {tool["name"] for item in lines(folder / name) for tool in item["tools"]}
        for name in ("train", "test")
    )
    assert train
    assert test
    assert not train & test


def test_own_tools_are_run_and_failing_calls_refused(folder: Path) -> None:
    words = ("--run", "./own_tools.py", "--out", "a", "--refused", "b", "--n", "30")
    result = weft(*words, "--per-skeleton", "50", "--styles", "simple=1,parallel=1", "--seed", "3")
    assert result.exit_code == 0, result.output
    said = [
        call["arguments"].get("item", "") for item in lines(folder / "a") for call in item["calls"]
    ]
    assert not any("e" in one for one in said)
    refused = [item for item in lines(folder / "b") if item["refusal"]["gate"] == "execution"]
    assert refused
    assert all(item["refusal"]["reason"] == "tool_failed" for item in refused)
    assert "execution" in result.output


def test_calls_that_nobody_ran_are_counted(folder: Path) -> None:
    words = ("--run", "./own_tools.py", "--tools", "tools.jsonl", "--out", "a", "--n", "10")
    result = weft(*words)
    assert result.exit_code == 0, result.output
    assert "that were not run" in result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--out", "a"), "there are no tools"),
        (("--tools", "none.jsonl", "--out", "a"), "none.jsonl"),
        (("--tools", "tools.jsonl", "--out", "a", "--styles", "poetry=1"), "poetry"),
        (("--tools", "tools.jsonl", "--out", "a", "--styles", "simple=many"), "--styles"),
        (("--tools", "tools.jsonl", "--out", "a", "--use", "sing"), "'sing' is none of"),
        (("--tools", "tools.jsonl", "--out", "a", "--model", "qwen"), "local:NAME"),
        (("--run", "./missing.py", "--out", "a"), "missing.py"),
        (("--run", "./own_tools.py", "--out", "a", "--n", "900"), "items"),
    ],
)
def test_mistakes_are_told(folder: Path, words: tuple[str, ...], said: str) -> None:
    result = weft(*words)
    assert result.exit_code == 2
    assert said in result.output
