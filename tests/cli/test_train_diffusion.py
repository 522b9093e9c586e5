"""`weft train-diffusion` as a person types it, with a training of a test's own but in one case."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("torch")

from tests.cli.hostile import FORBIDDEN
from weft.cli.main import app
from weft.training.diffusion import spec
from weft.training.diffusion.spec import DiffusionTrainingJob, DiffusionTrainingResult


def weft(*words: str) -> Result:
    return CliRunner().invoke(app, ["train-diffusion", *words])


def test_a_real_one_from_nothing_to_a_folder(tmp_path: Path) -> None:
    words = ["list", "--variant", "full", "--out", str(tmp_path / "out"), "--steps", "2",
             "--texts", "4", "--threads", "1", "--set", "width=32", "--set", "layers=1",
             "--set", "examined=1"]  # fmt: skip
    ran = weft(*words)
    assert ran.exit_code == 0, ran.output
    assert f"list is in {tmp_path / 'out'}: 2 steps" in ran.stdout
    assert "  copy of 5: " in ran.stdout
    assert "training: 2 of 2, loss" in ran.stderr
    assert "measuring on 17 texts" in ran.stderr
    assert (tmp_path / "out" / "model.safetensors").exists()
    again = weft(*words)
    assert again.exit_code == 2
    assert "holds a model already" in again.stderr


def training(
    monkeypatch: pytest.MonkeyPatch,
    result: Callable[[DiffusionTrainingJob], DiffusionTrainingResult | None],
) -> list[Any]:
    """Records orders instead of following them."""
    orders: list[Any] = []

    def train(order: DiffusionTrainingJob, resume: bool, _: Any) -> DiffusionTrainingResult | None:
        orders.append((replace(order, find=None), resume))
        return result(order)

    monkeypatch.setattr(spec, "kind_of", lambda name: SimpleNamespace(name=name, train=train))
    return orders


def test_what_was_asked_is_what_is_ordered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    orders = training(
        monkeypatch,
        lambda order: DiffusionTrainingResult("list", order.out, 7, 1.25, ("copy: 100%",)),
    )
    (tmp_path / "config.json").write_text("{}", "utf-8")
    ran = weft(
        "list", "--variant", "ar", "--out", str(tmp_path / "out"), "--model", str(tmp_path),
        "--steps", "7", "--rate", "0.01", "--texts", "2", "--seed", "5", "--set", "width=64",
        "--data", "chats.jsonl", "--threads", "1", "--resume", "--json"
    )  # fmt: skip
    assert ran.exit_code == 0, ran.output
    [(order, resume)] = orders
    assert resume is True
    assert order == DiffusionTrainingJob(
        "list", tmp_path / "out", "ar", tmp_path, "chats.jsonl",
        {"steps": 7, "rate": 0.01, "texts": 2, "seed": 5}, {"width": 64}, 1
    )  # fmt: skip
    said = json.loads(ran.stdout)
    assert (said["status"], said["loss"], said["measured"]) == ("succeeded", 1.25, ["copy: 100%"])


def test_a_stopped_one_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    training(monkeypatch, lambda order: None)
    ran = weft("list", "--out", str(tmp_path), "--json")
    assert ran.exit_code == 130
    assert json.loads(ran.stdout)["status"] == "interrupted"
    assert "--resume goes on" in ran.stderr


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), OSError("No space left on device: x")]
)
def test_a_disk_without_room_is_no_bug_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: OSError
) -> None:
    def full(order: DiffusionTrainingJob) -> None:
        raise error

    training(monkeypatch, full)
    ran = weft("list", "--out", str(tmp_path / "out"), "--json")
    assert ran.exit_code == 1
    said = json.loads(ran.stdout)["error"]
    assert said["error"] == "StoreError"
    assert "No space left on device" in said["message"]
    assert "--resume" in said["hint"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = weft("list", "--variant", "full", "--out", str(tmp_path / "file" / "out"))
    assert ran.exit_code == 1
    assert "Not a directory" in ran.stderr
    assert "bug" not in ran.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lists", "--out", "x"], "no diffusion model 'lists' can be trained"),
        (["list", "--out", "x"], "there is no list model None"),
        (["list", "--out", "x", "--variant", "full", "--steps", "0"], "nothing can be trained"),
        (["list", "--out", "x", "--variant", "full", "--set", "depth=2"], "no setting 'depth'"),
        (["list", "--out", "x", "--variant", "full", "--rate", "nan"], "rate nan: it is a number"),
        (["list", "--out", "x", "--variant", "full", "--data", "x"], "leave --data out"),
        (["list", "--out", "x", "--variant", "full", "--threads", "99999"], "more than the"),
        (["learn2pd", "--out", "x"], "a filter is for one model"),
        (
            ["learn2pd", "--out", "x", "--model", "list-ar"],
            "list-ar is no diffusion model",
        ),
        (["block", "--out", "x", "--model", "list-full", "--threads", "1"], "other words"),
        (["learn2pd", "--out", "x", "--model", "no-such"], "no model 'no-such'"),
        (["list", "--variant", "full"], "--out"),
        (["--out", "x"], "KIND"),
    ],
)
def test_what_is_wrong_is_named(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = weft(*words)
    assert ran.exit_code in (1, 2)
    assert said in ran.stderr
    assert "Traceback" not in ran.output
    assert not set(ran.stderr) & set(FORBIDDEN)


def test_the_list() -> None:
    ran = weft("--list")
    assert ran.exit_code == 0
    assert "learn2pd" in ran.stdout
    said = json.loads(weft("--list", "--json").stdout)
    assert {"block", "dparallel", "learn2pd", "list"} <= {kind["name"] for kind in said}
