"""Trainings of the list model and what is made for it, from an order to a folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from weft.core.errors import InputError
from weft.decoding import tensor_file
from weft.decoding.diffusion.models import is_diffusion, load
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.languages import LANGUAGES
from weft.decoding.network.network import Network
from weft.decoding.network.options import NetworkOptions
from weft.training.diffusion.list_model import network
from weft.training.diffusion.spec import (
    KINDS,
    DiffusionTrainingJob,
    DiffusionTrainingResult,
    TrainingListener,
    kind_of,
)
from weft.training.frame import EvaluationStarted, StepProgress, TrainingNews

TINY = {"width": 32, "layers": 1, "examined": 0}
FLOAT32 = NetworkOptions(dtype="float32", threads=1)


def order(out: Path, variant: str = "full", **more: object) -> DiffusionTrainingJob:
    few = {"steps": 4, "texts": 6, "keep_every": 2}
    told = DiffusionTrainingJob(
        "list", out, variant=variant, schedule=few, settings=TINY, threads=1
    )
    return replace(told, **more)  # type: ignore[arg-type]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return tensor_file.read(folder / "model.safetensors")[0]


def follow(
    told: DiffusionTrainingJob, *, resume: bool = False, hearing: TrainingListener | None = None
) -> object:
    return kind_of(told.kind).train(told, resume, hearing or TrainingListener())


def in_pieces(told: DiffusionTrainingJob, after: int) -> None:
    """Stopped after so many steps, then resumed."""
    steps: list[TrainingNews] = []

    def hear(news: TrainingNews) -> None:
        if isinstance(news, StepProgress):
            steps.append(news)

    stopped = follow(told, hearing=TrainingListener(hear, lambda: len(steps) >= after))
    assert stopped is None
    assert not (told.out / "config.json").exists()
    assert follow(told, resume=True) is not None


def measured_when_gone_on_with(told: DiffusionTrainingJob, lines: int) -> None:
    """Stopped as soon as the measuring begins, then resumed."""
    heard: list[TrainingNews] = []
    hearing = TrainingListener(
        heard.append, lambda: any(isinstance(news, EvaluationStarted) for news in heard)
    )
    assert follow(told, hearing=hearing) is None
    assert not (told.out / "config.json").exists()
    trained = follow(told, resume=True)
    assert isinstance(trained, DiffusionTrainingResult)
    assert len(trained.measured) == lines


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A list model of each variant, of which nothing can be expected."""
    folder = tmp_path_factory.mktemp("made")
    for variant in network.VARIANTS:
        follow(order(folder / variant, variant))
    return folder


def test_in_pieces_as_in_one_go_bit_for_bit(made: Path, tmp_path: Path) -> None:
    in_pieces(order(tmp_path / "out"), after=2)
    one_go, pieces = weights(made / "full"), weights(tmp_path / "out")
    assert one_go.keys() == pieces.keys()
    assert all(one_go[name].equal(pieces[name]) for name in one_go)
    assert not (tmp_path / "out" / "checkpoint.safetensors").exists()


@pytest.mark.parametrize("variant", ["full", "block"])
def test_the_folder_is_a_diffusion_model(made: Path, variant: str) -> None:
    assert is_diffusion(made / variant)
    traits = load(made / variant, FLOAT32).traits
    assert (traits.vocabulary, traits.mask_id) == (words.SIZE, words.MASK)
    assert traits.end_ids == {words.EOS}
    assert traits.banned == {words.PAD, words.MASK}
    assert (traits.attention, traits.block) == (
        ("full", 0) if variant == "full" else ("block_causal", network.BLOCK)
    )
    assert traits.digest


def test_the_twin_is_a_causal_model(made: Path) -> None:
    assert not is_diffusion(made / "ar")
    assert Network.load(made / "ar", FLOAT32).generation.end_ids == {words.EOS}


def test_it_begins_with_another_s_weights(made: Path, tmp_path: Path) -> None:
    slow = {"steps": 1, "texts": 2, "rate": 1e-9}
    follow(order(tmp_path / "out", "block", model=made / "full", schedule=slow))
    before, after = weights(made / "full"), weights(tmp_path / "out")
    assert all(torch.allclose(before[name], after[name], atol=1e-3) for name in before)
    assert network.beginning_with(made / "full").config.hidden_size == 32


def test_what_is_measured_is_told(made: Path, tmp_path: Path) -> None:
    settings = {**TINY, "examined": 2}
    trained = follow(order(tmp_path / "out", settings=settings, schedule={"steps": 1, "texts": 2}))
    lines = trained.measured  # type: ignore[attr-defined]
    assert any("shuffle of 5: " in line and "(3.8% if predictions were true)" in line
               for line in lines)  # fmt: skip


def test_it_can_be_stopped_while_it_is_measured(made: Path, tmp_path: Path) -> None:
    told = order(tmp_path / "out", settings={**TINY, "examined": 1})
    measured_when_gone_on_with(told, len(LANGUAGES))
    one_go, pieces = weights(made / "full"), weights(tmp_path / "out")
    assert all(one_go[name].equal(pieces[name]) for name in one_go)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"variant": "fully"}, "no list model 'fully'"),
        ({"variant": None}, "no list model None"),
        ({"settings": {"width": 40}}, "width 40"),
        ({"settings": {"depth": 4}}, "no setting 'depth'"),
        ({"schedule": {"steps": 0}}, "nothing can be trained"),
        ({"settings": {"width": 32, "layers": 0}}, "0 layers"),
        ({"settings": {"width": 8192, "layers": 1}}, "width 8192"),
        ({"device": "cuda"}, "trained on the CPU"),
        ({"data": "chats.jsonl"}, "no use for a data"),
        ({"model": Path("nowhere")}, "cannot be read"),
    ],
)
def test_an_order_that_cannot_be_followed(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        follow(replace(order(tmp_path / "out"), **change))  # type: ignore[arg-type]


def test_weights_of_another_size_are_refused(made: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="another shape"):
        follow(order(tmp_path / "out", model=made / "full", settings={**TINY, "width": 64}))


def test_a_folder_with_something_in_it_is_left_alone(made: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds a model already"):
        follow(order(made / "full"))
    with pytest.raises(InputError, match="no training to go on with"):
        follow(order(tmp_path / "out"), resume=True)


def test_all_kinds_are_there() -> None:
    assert [kind_of(name).name for name in KINDS] == list(KINDS)
    with pytest.raises(InputError, match="no diffusion model 'lists'"):
        kind_of("lists")


class TestDistilling:
    def told(self, made: Path, out: Path, variant: str = "full") -> DiffusionTrainingJob:
        few = {"steps": 4, "texts": 6, "keep_every": 2}
        settings = {"texts": 8, "slots": 8, "examined": 0}
        model = made / variant
        return DiffusionTrainingJob(
            "dparallel", out, model=model, schedule=few, settings=settings, threads=1
        )

    @pytest.mark.parametrize("variant", ["full", "block"])
    def test_in_pieces_as_in_one_go(self, made: Path, tmp_path: Path, variant: str) -> None:
        follow(self.told(made, tmp_path / "a", variant))
        in_pieces(self.told(made, tmp_path / "b", variant), after=2)
        one_go, pieces = weights(tmp_path / "a"), weights(tmp_path / "b")
        assert all(one_go[name].equal(pieces[name]) for name in one_go)
        assert any(not one_go[name].equal(w) for name, w in weights(made / variant).items())
        assert load(tmp_path / "a", FLOAT32).preset == "dparallel"

    def test_stopped_while_texts_are_written(self, made: Path, tmp_path: Path) -> None:
        told = self.told(made, tmp_path / "out")
        assert follow(told, hearing=TrainingListener(stop=lambda: True)) is None
        assert follow(told, resume=True) is not None

    def test_stopped_while_it_is_measured(self, made: Path, tmp_path: Path) -> None:
        told = self.told(made, tmp_path / "out")
        measured_when_gone_on_with(replace(told, settings={**told.settings, "examined": 1}), 2)

    def test_it_needs_a_model(self, made: Path, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="of one model"):
            follow(replace(self.told(made, tmp_path / "x"), model=None))


class TestFilters:
    def told(self, made: Path, out: Path, variant: str = "full") -> DiffusionTrainingJob:
        few = {"steps": 6, "texts": 64, "keep_every": 2}
        settings = {"texts": 8, "slots": 8, "hidden": 6}
        model = made / variant
        return DiffusionTrainingJob(
            "learn2pd", out, model=model, schedule=few, settings=settings, threads=1
        )

    @pytest.mark.parametrize("variant", ["full", "block"])
    def test_in_pieces_as_in_one_go(self, made: Path, tmp_path: Path, variant: str) -> None:
        follow(self.told(made, tmp_path / "a", variant))
        in_pieces(self.told(made, tmp_path / "b", variant), after=3)
        one_go, pieces = weights(tmp_path / "a"), weights(tmp_path / "b")
        assert one_go["inward"].shape == (6, 8 if variant == "full" else network.BLOCK)
        assert all(one_go[name].equal(pieces[name]) for name in one_go)

    def test_too_few_texts_are_told(self, made: Path, tmp_path: Path) -> None:
        told = self.told(made, tmp_path / "out")
        with pytest.raises(InputError, match="too few to learn from"):
            follow(replace(told, settings={**told.settings, "texts": 1}))

    def test_it_is_for_the_model_it_was_made_with(self, made: Path, tmp_path: Path) -> None:
        follow(self.told(made, tmp_path / "out"))
        own = json.loads((tmp_path / "out" / "config.json").read_text("utf-8"))["weft_filter"]
        assert own["model"] == load(made / "full", FLOAT32).traits.digest
        assert own["model"] != load(made / "block", FLOAT32).traits.digest

    def test_stopped_while_texts_are_written(self, made: Path, tmp_path: Path) -> None:
        told = self.told(made, tmp_path / "out")
        assert follow(told, hearing=TrainingListener(stop=lambda: True)) is None
        assert follow(told, resume=True) is not None
