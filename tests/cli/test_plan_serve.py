"""`weft plan-serve` as a person types it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import cast

import click
import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from tests.cli.hostile import FORBIDDEN
from weft.cli.main import app

SUMMARY = '{"rate": 2, "prompt": {"mean": 300}, "output": {"mean": 50}, "requests": 30SLO}'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "home"))
    (tmp_path / "few.json").write_text(SUMMARY.replace("SLO", ""))
    (tmp_path / "strict.json").write_text(SUMMARY.replace("SLO", ', "slo": {"ttft_s": 1e-6}'))
    return tmp_path


def plan(*words: str) -> Result:
    return CliRunner().invoke(app, ["plan-serve", *words], env={"COLUMNS": "140"})


def test_a_ranked_table_with_reasons_and_a_command(folder: Path) -> None:
    shown = plan("llama-3.1-70b", "--gpu", "h200:8", "--traffic", "few.json", "--rows", "3")
    assert shown.exit_code == 0, shown.output
    for words in (
        "70.55 B parameters",
        "8 x H200 SXM 141 GB",
        "2 requests/s",
        "keeps up",
        "more (--rows shows them)",
        "131.4 GiB of weights a rank do not fit 129.2 GiB",
        "best in bf16:",
        "weft serve meta-llama/Llama-3.1-70B-Instruct --",
        "answers change",
    ):
        assert words in shown.stdout


def test_json_is_one_document(folder: Path) -> None:
    words = ["qwen3-235b-a22b", "--gpu", "h200:8", "--traffic", "few.json", "--json"]
    shown = plan(*words, "--goal", "cost", "--quantization", "fp8")
    told = json.loads(shown.stdout)
    assert (told["parameters"], told["goal"]) == (235_093_634_560, "cost")
    ranks = [one["devices"] for one in told["plans"] if one["breach"] is None]
    assert ranks == sorted(ranks)
    first = told["plans"][0]
    assert first["command"].startswith("weft serve Qwen/Qwen3-235B-A22B ")
    assert {"ttft_p50_s", "tpot_p50_s", "tokens_s"} <= first["outcome"].keys()
    assert all(one["reason"] for one in told["rejected"])


@pytest.mark.parametrize("model", ["llama-3.1-8b", "mixtral-8x7b"])
def test_the_commands_are_ones_that_weft_serve_takes(folder: Path, model: str) -> None:
    shown = plan(model, "--gpu", "h200:16", "--traffic", "few.json", "--json")
    serve = cast(click.Group, typer.main.get_command(app)).commands["serve"]
    for one in json.loads(shown.stdout)["plans"]:
        weft, verb, *words = shlex.split(one["command"])
        assert (weft, verb) == ("weft", "serve")
        given = serve.make_context("serve", words).params
        layout = one["layout"]
        assert (given["tp"], given["pp"]) == (layout["tp"], layout["pp"])
        assert given["dp"] * given["replicas"] == layout["dp"]
        assert given["extra"][0] == "--max-num-batched-tokens"
        assert (given["nodes"] > 1) == (layout["tp"] * layout["pp"] * given["dp"] > 8)


def test_broken_promises_are_shown(folder: Path) -> None:
    shown = plan("llama-3.1-8b", "--gpu", "h100:1", "--traffic", "strict.json")
    assert shown.exit_code == 0
    assert "TTFT p95" in shown.stdout
    assert "keeps up" not in shown.stdout


def test_nothing_fits(folder: Path) -> None:
    shown = plan("llama-3.1-405b", "--gpu", "l4:1", "--traffic", "few.json")
    assert shown.exit_code == 1
    assert "No plan works" in shown.stdout


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["llama-3.1-8b", "--gpu", "h300:8"], 2, "no GPU 'h300:8'"),
        (["llama-9", "--gpu", "h200:8"], 1, "shapes the planner knows"),
        (["llama-3.1-8b", "--gpu", "h200:1", "--quantization", "fp4"], 2, "fp4"),
        (["llama-3.1-8b", "--gpu", "h200:1", "--traffic", "bad.jsonl"], 2, "bad.jsonl:2"),
        (["llama-3.1-8b", "--gpu", "h200:1", "--max-batched-tokens", "9"], 2, "do not fit 9"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, words: list[str], status: int, said: str) -> None:
    line = '{"arrival_s": 0, "prompt_tokens": 1, "output_tokens": 1}'
    (folder / "bad.jsonl").write_text(f'{line}\n{{"arrival_s": 1}}\n')
    shown = plan(*words)
    assert shown.exit_code == status
    assert said in shown.stderr
    assert "Traceback" not in shown.stderr


def test_a_hostile_config_cannot_write_to_the_terminal(folder: Path) -> None:
    evil = folder / "evil\x1b[31m"
    evil.mkdir()
    (evil / "config.json").write_text('{"hidden_size": "\\u001b[2J[bold]x"}')
    shown = plan(str(evil), "--gpu", "h200:1")
    assert shown.exit_code == 2
    assert not [mark for mark in FORBIDDEN if mark in shown.output]
