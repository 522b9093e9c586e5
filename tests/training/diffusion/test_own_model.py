"""dParallel and Learn2PD on a model of one's own: a chat model that was made to fill blocks."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.decoding.diffusion.network import small
from tests.training.diffusion.block.conftest import chat_model
from weft.core.errors import InputError
from weft.decoding import tensor_file
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.catalogue import decoder_config
from weft.decoding.diffusion.denoising import denoise_text
from weft.decoding.diffusion.models.loading import load
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.sampling import CounterRng
from weft.decoding.shipped_weights import shipped_weights
from weft.training.diffusion.parallel_decoding import dparallel as student_module
from weft.training.diffusion.parallel_decoding.dparallel import DiffusionStudent
from weft.training.diffusion.spec import (
    DiffusionTrainingJob,
    DiffusionTrainingResult,
    TrainingListener,
    kind_of,
)
from weft.training.frame import StepProgress

__all__ = ["chat_model"]

WEIGHTS = shipped_weights("diffusion")
FEW = {"steps": 4, "texts": 2, "keep_every": 2}


@pytest.fixture(scope="module")
def own(chat_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An adapter for the chat model, whose blocks are of four slots and predicted one slot late."""
    out = tmp_path_factory.mktemp("own") / "fills"
    settings = {"block": 4, "rank": 2, "grow": 1, "held_out": 2}
    schedule = {"steps": 2, "texts": 2, "rate": 0.02, "longest": 400}
    told = DiffusionTrainingJob(
        "block", out, None, chat_model, "json", schedule, settings, threads=1
    )
    assert kind_of("block").train(told, False, TrainingListener()) is not None
    return out


@pytest.fixture(scope="module")
def talks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("talks") / "talks.jsonl"
    turns = [{"role": "user", "content": "the fox"}, {"role": "assistant", "content": "home"}]
    lines = [json.dumps({"messages": turns}), *(json.dumps(f"the dog {n}") for n in range(11))]
    path.write_text("\n".join(lines), "utf-8")
    return path


def order(
    kind: str, own: Path, chat_model: Path, out: Path, **more: object
) -> DiffusionTrainingJob:
    settings = {
        "dparallel": {"texts": 4, "slots": 8, "examined": 2},
        "learn2pd": {"texts": 6, "slots": 8, "hidden": 6},
    }[kind]
    told = DiffusionTrainingJob(
        kind, out, None, own, None, FEW, settings, threads=1, find=lambda _: chat_model
    )
    return replace(told, **more)  # type: ignore[arg-type]


def follow(
    told: DiffusionTrainingJob, *, resume: bool = False, after: int = 0
) -> DiffusionTrainingResult | None:
    losses: list[float] = []

    def hear(news: object) -> None:
        if isinstance(news, StepProgress):
            losses.append(news.loss)

    hearing = TrainingListener(hear, lambda: bool(after) and len(losses) >= after)
    return kind_of(told.kind).train(told, resume, hearing)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return tensor_file.read(folder / "model.safetensors")[0]


@pytest.mark.parametrize(
    ("kind", "change"),
    [("dparallel", {}), ("dparallel", {"rank": 2}), ("learn2pd", {})],
    ids=["dparallel", "dparallel, thin maps", "learn2pd"],
)
def test_in_pieces_as_in_one_go(
    kind: str, change: dict[str, int], own: Path, chat_model: Path, tmp_path: Path
) -> None:
    told = order(kind, own, chat_model, tmp_path / "whole")
    told = replace(told, settings={**told.settings, **change})
    assert follow(told) is not None
    parts = replace(told, out=tmp_path / "parts")
    assert follow(parts, after=1) is None
    assert follow(parts, resume=True) is not None
    one_go, pieces = weights(told.out), weights(parts.out)
    assert one_go.keys() == pieces.keys()
    assert all(one_go[name].equal(pieces[name]) for name in one_go)


def test_a_distilled_model_is_read_and_written_with(
    own: Path, chat_model: Path, tmp_path: Path
) -> None:
    told = order("dparallel", own, chat_model, tmp_path / "out")
    trained = follow(told)
    assert trained is not None
    assert [line.partition(":")[0] for line in trained.measured] == [
        "2 texts that were not learnt from",
        "slots as the model that was learnt from writes them one by one",
    ]
    before = load(own, small.EXACT, find=lambda _: chat_model)
    made = load(told.out, small.EXACT)  # it needs no base
    assert made.preset == "dparallel"
    for name in ("attention", "block", "shifted", "mask_id", "end_ids", "banned", "vocabulary"):
        assert getattr(made.traits, name) == getattr(before.traits, name), name
    canvas = Canvas([5, 6, 7], 9, made.traits.mask_id or 0)
    plugs = decoder_config(made.preset, made.traits, {})
    row = denoise_text(NetworkAdapter(made.network, made.traits), canvas, plugs, CounterRng(0))
    assert row.counters.commits >= row.counters.kept > 0


def test_a_filter_is_for_its_model(own: Path, chat_model: Path, tmp_path: Path) -> None:
    told = order("learn2pd", own, chat_model, tmp_path / "out")
    assert follow(told) is not None
    made = load(own, small.EXACT, find=lambda _: chat_model)
    plugs = decoder_config("learn2pd", made.traits, {"filter": str(told.out)})
    canvas = Canvas([5, 6, 7], 9, made.traits.mask_id or 0)
    row = denoise_text(NetworkAdapter(made.network, made.traits), canvas, plugs, CounterRng(0))
    assert row.counters.commits >= row.counters.kept > 0


@pytest.mark.parametrize("kind", ["dparallel", "learn2pd"])
def test_prompts_of_a_file(
    kind: str, own: Path, chat_model: Path, talks: Path, tmp_path: Path
) -> None:
    told = order(kind, own, chat_model, tmp_path / "out", data=str(talks))
    trained = follow(replace(told, settings={**told.settings, "texts": 50}))
    assert trained is not None
    if kind == "dparallel":  # of twelve prompts, every tenth is held out
        assert trained.measured[0].startswith("1 texts")


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("model", ["own", "list-full", "list-block"])
def test_a_student_begins_as_the_model_it_learns_from(
    model: str,
    rank: int,
    own: Path,
    chat_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever its sight and its shift: what it says of masked slots is what is decoded by."""
    folder = own if model == "own" else WEIGHTS / model
    told = order("dparallel", folder, chat_model, tmp_path / "out")
    monkeypatch.setattr(student_module, "mixed_precision", lambda _device: nullcontext())
    student = DiffusionStudent(told, rank)
    found = load(folder, small.EXACT, find=lambda _: chat_model)
    prompt, room = [9, 26, 28, 30, 2, 27], 6
    canvas = Canvas(prompt, room, student.mask)
    length = len(prompt) + room
    size = found.traits.block or length
    # of the last block that is read, all slots are open
    begin = max(len(prompt), (length - 1) // size * size)
    decided = np.arange(len(prompt), begin)
    canvas.commit(decided, np.full(len(decided), 31))
    wanted = np.arange(begin, length)
    [expected] = NetworkAdapter(found.network, found.traits).forward(
        [small.whole(canvas, wanted.tolist())]
    )
    ids = torch.from_numpy(canvas.ids[None].copy())
    open_ = torch.zeros_like(ids, dtype=torch.bool)
    open_[0, wanted] = True
    blocks = torch.arange(length) // size
    with torch.no_grad():
        logits = student.logits(ids, open_, blocks[:, None] >= blocks).numpy()
    allowed = np.isfinite(expected)
    np.testing.assert_allclose(logits[allowed], expected[allowed], atol=1e-3)


def test_what_cannot_be_learnt_from(chat_model: Path, tmp_path: Path) -> None:
    for kind in ("dparallel", "learn2pd"):
        with pytest.raises(InputError, match="is no diffusion model to learn from"):
            follow(order(kind, chat_model, chat_model, tmp_path / kind))
