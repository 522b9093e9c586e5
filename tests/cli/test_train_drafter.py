"""`weft train-drafter` as a person types it, with a training of a test's own but in one case."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

pytest.importorskip("torch")

from tests.cli.hostile import FORBIDDEN
from tests.serving.local.conftest import tiny_path
from weft.cli.main import app
from weft.cli.progress_bars import TrainingProgress, stopping
from weft.training.drafters import session
from weft.training.drafters.session import DrafterTrainingJob, DrafterTrainingResult
from weft.training.frame import EvaluationStarted, StepProgress, TextsWritten, TrainingNews

__all__ = ["tiny_path"]


def weft(*words: str) -> Result:
    return CliRunner().invoke(app, ["train-drafter", *words])


@pytest.fixture
def words(tiny_path: Path, tmp_path: Path) -> list[str]:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("the fox\nthe dog\nthe other\n", "utf-8")
    return [
        "medusa", "--model", str(tiny_path), "--data", str(prompts), "--out", str(tmp_path / "out")
    ]  # fmt: skip


def test_a_real_one_from_prompts_to_a_folder(words: list[str], tmp_path: Path) -> None:
    few = ["--steps", "3", "--max-tokens", "6", "--set", "heads=2", "--threads", "1"]
    ran = weft(*words, *few)
    assert ran.exit_code == 0, ran.output
    assert f"the medusa drafter is in {tmp_path / 'out'}: 3 steps on 3 texts" in ran.stdout
    assert "  2 further on:" in ran.stdout
    assert "the model writes texts: 3 of 3" in ran.stderr
    assert "training: 3 of 3, loss" in ran.stderr
    assert (tmp_path / "out" / "model.safetensors").exists()
    again = weft(*words, *few)
    assert again.exit_code == 2
    assert "holds a drafter already" in again.stderr


def trained(order: DrafterTrainingJob) -> DrafterTrainingResult:
    return DrafterTrainingResult(
        "medusa", order.out, 7, 1.25, 3, 18, {"accuracy": [[0.5, 0.25]], "heads": 1}
    )


def training(
    monkeypatch: pytest.MonkeyPatch,
    result: Callable[[DrafterTrainingJob], DrafterTrainingResult | None],
) -> list[Any]:
    """Records orders instead of following them."""
    orders: list[Any] = []

    def train(order: DrafterTrainingJob, **how: object) -> DrafterTrainingResult | None:
        orders.append((order, how["resume"]))
        return result(order)

    monkeypatch.setattr(session, "train", train)
    return orders


def test_what_was_asked_is_what_is_ordered(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    orders = training(monkeypatch, trained)
    ran = weft(
        *words, "--steps", "7", "--rate", "0.01", "--texts", "2", "--seed", "5", "--set", "heads=1",
        "--corpus", str(tmp_path / "c"), "--temperature", "0.7", "--resume", "--json"
    )  # fmt: skip
    assert ran.exit_code == 0, ran.output
    [(order, resume)] = orders
    assert resume is True
    assert order.schedule == {"steps": 7, "rate": 0.01, "texts": 2, "seed": 5}
    assert order.settings == {"heads": 1}
    assert (order.writing.temperature, order.writing.max_tokens, order.writing.seed) == (
        0.7,
        192,
        5,
    )
    assert order.corpus == tmp_path / "c"
    said = json.loads(ran.stdout)
    assert (said["status"], said["kind"], said["steps"], said["loss"]) == (
        "succeeded", "medusa", 7, 1.25
    )  # fmt: skip
    assert said["folder"] == str(order.out)


def test_a_stopped_one_says_how_to_go_on(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    training(monkeypatch, lambda order: None)
    ran = weft(*words, "--json")
    assert ran.exit_code == 130
    assert json.loads(ran.stdout)["status"] == "interrupted"
    assert "--resume goes on" in ran.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({0: "medussa"}, "no drafter 'medussa' can be trained"),
        ({2: "no-such-model"}, "no model 'no-such-model'"),
        ({4: "missing.jsonl"}, "cannot be read"),
        ({5: "--oot"}, "No such option"),
    ],
)
def test_what_is_wrong_is_named(words: list[str], change: dict[int, str], said: str) -> None:
    for place, word in change.items():
        words[place] = word
    ran = weft(*words)
    assert ran.exit_code in (1, 2)
    assert said in ran.stderr
    assert "Traceback" not in ran.output
    assert not set(ran.stderr) & set(FORBIDDEN)


@pytest.mark.parametrize("option", ["--model", "--data", "--out"])
def test_what_is_missing_is_named(words: list[str], option: str) -> None:
    place = words.index(option)
    ran = weft(*words[:place], *words[place + 2 :])
    assert ran.exit_code == 2
    assert option in ran.stderr


@pytest.mark.parametrize(
    ("words_more", "said"),
    [(["--set", "heads=two"], "expected a whole number"), (["--set", "heads"], "NAME=VALUE"),
     (["--set", "prompts=2"], "no setting 'prompts'"), (["--steps", "0"], "nothing can be trained"),
     (["--device", "abacus"], "nothing can be trained on 'abacus'")],
)  # fmt: skip
def test_settings_that_cannot_be(words: list[str], words_more: list[str], said: str) -> None:
    ran = weft(*words, *words_more)
    assert ran.exit_code == 2
    assert said in ran.stderr


def test_the_list() -> None:
    ran = weft("--list")
    assert ran.exit_code == 0
    assert "medusa" in ran.stdout
    assert "--set heads=4, tokens=8192" in ran.stdout
    said = json.loads(weft("--list", "--json").stdout)
    assert {"medusa", "pass", "ppd"} <= {kind["name"] for kind in said}


def test_progress_is_a_line_every_ten_seconds() -> None:
    out, times = io.StringIO(), iter([0.0, 1.0, 2.0, 9.0, 12.5, 13.0, 14.0])
    news: list[TrainingNews] = [
        TextsWritten(1, 9),
        TextsWritten(2, 9),
        StepProgress(1, 4, 2.0, 100, 2.0, 1),
        StepProgress(2, 4, 1.5, 200, 4.0, 2),
        StepProgress(3, 4, 1.25, 300, 1000.0, 3),
        StepProgress(4, 4, 1.0, 400, 8.0, 4),
        EvaluationStarted(3),
    ]
    with TrainingProgress(Console(file=out, width=200), lambda: next(times)) as show:
        for told in news:
            show(told)
    assert out.getvalue().splitlines() == [
        "the model writes texts: 1 of 9",
        "training: 1 of 4, loss 2.000, 50 tokens/s, 0:06 min left",
        "training: 3 of 4, loss 1.250, 0 tokens/s, 5:33 min left",
        "training: 4 of 4, loss 1.000, 50 tokens/s, 0:00 min left",
        "measuring on 3 texts",
    ]


def test_ctrl_c_is_noticed_and_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stopping() as stop:
        assert not stop()
        signal.raise_signal(signal.SIGINT)
        assert stop()
    assert signal.getsignal(signal.SIGINT) is before
