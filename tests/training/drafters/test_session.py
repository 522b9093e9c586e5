from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.serving.local.playback import EXACT
from weft.core.errors import InputError
from weft.decoding.network.network import Network
from weft.decoding.speculative import trained_drafter
from weft.training.distillation import DistillationOptions
from weft.training.drafters.session import (
    CHECKPOINT,
    DrafterTrainingJob,
    DrafterTrainingResult,
    train,
)
from weft.training.frame import EvaluationStarted, StepProgress, TextsWritten, TrainingNews


@pytest.fixture
def order(tiny_path: Path, tmp_path: Path) -> DrafterTrainingJob:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n".join(f"the fox and {n}" for n in range(12)), "utf-8")
    return DrafterTrainingJob(
        kind="ppd",
        model=tiny_path,
        prompts=str(prompts),
        out=tmp_path / "out",
        writing=DistillationOptions(max_tokens=10),
        schedule={"steps": 6, "keep_every": 2},
        settings={"prompts": 2, "points": 4},
        threads=1,
    )


def test_from_prompts_to_a_drafter(order: DrafterTrainingJob, tiny_path: Path) -> None:
    news: list[TrainingNews] = []
    trained = train(order, on_news=news.append)
    assert isinstance(trained, DrafterTrainingResult)
    assert [type(told) for told in news] == [TextsWritten] * 13 + [StepProgress] * 6 + [
        EvaluationStarted
    ]
    assert news[0] == TextsWritten(0, 12)
    assert (trained.kind, trained.steps, trained.texts) == ("ppd", 6, 11)
    network = Network.load(tiny_path, EXACT)
    read = trained_drafter.load(order.out, "ppd", network)
    assert read.whole("prompts", 1, 8) == 2
    assert read.tensor("prompts", (2, network.width)).abs().max() > 0.0
    names = {path.name for path in order.out.iterdir()}
    assert names == {"config.json", "model.safetensors", "corpus.safetensors"}
    with pytest.raises(InputError, match="holds a drafter already"):
        train(order)


def test_stopped_and_resumed_it_makes_the_same_drafter(
    order: DrafterTrainingJob, tmp_path: Path
) -> None:
    from dataclasses import replace

    whole = replace(order, out=tmp_path / "whole")
    train(whole)
    told: list[TrainingNews] = []
    assert train(order, on_news=told.append, stop=lambda: len(told) == 5) is None
    with pytest.raises(InputError, match="other prompts, by another model"):
        train(replace(order, writing=DistillationOptions(max_tokens=9)), resume=True)
    told.clear()
    assert train(order, resume=True, on_news=told.append, stop=lambda: len(told) > 11) is None
    assert (order.out / CHECKPOINT).exists()
    with pytest.raises(InputError, match="a training that has not ended"):
        train(order)
    told.clear()
    trained = train(order, resume=True, on_news=told.append)
    assert trained is not None
    assert isinstance(told[1], StepProgress)
    assert told[1].step > 1
    for name in ("config.json", "model.safetensors"):
        assert (order.out / name).read_bytes() == (whole.out / name).read_bytes()
    assert not (order.out / CHECKPOINT).exists()


def test_a_training_that_only_lacked_its_measurement(order: DrafterTrainingJob) -> None:
    def interrupt(news: TrainingNews) -> None:
        if isinstance(news, EvaluationStarted):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(order, on_news=interrupt)
    trained = train(order, resume=True)
    assert trained is not None
    assert trained.loss is None
    assert json.loads((order.out / "config.json").read_text("utf-8"))["weft_drafter"] == "ppd"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "medussa"}, "no drafter 'medussa' can be trained"),
        ({"prompts": "/nowhere.txt"}, "cannot be read"),
        ({"settings": {"heads": 2}}, "no setting 'heads'"),
        ({"schedule": {"steps": 0}}, "nothing can be trained"),
        ({"schedule": {"stepz": 1}}, "stepz"),
        ({"device": "abacus"}, "nothing can be trained on 'abacus'"),
        ({"model": Path("/nowhere")}, "has no tokenizer"),
    ],
)
def test_orders_that_cannot_be(
    order: DrafterTrainingJob, change: dict[str, object], said: str
) -> None:
    from dataclasses import replace

    with pytest.raises(InputError, match=said):
        train(replace(order, **change))  # type: ignore[arg-type]


def test_nothing_to_resume(order: DrafterTrainingJob, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to go on with"):
        train(order, resume=True)
    order.out.write_text("a file")
    with pytest.raises(InputError, match="is no folder"):
        train(order)
