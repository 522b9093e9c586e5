"""Every trainer on another device than the CPU: from texts to a folder, stopped and resumed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fake_device import operations
from tests.serving.local.playback import EXACT
from tests.training.diffusion.block.conftest import chat_model
from weft.core.errors import InputError
from weft.decoding import tensor_file
from weft.decoding.network.network import Network
from weft.decoding.speculative import trained_drafter
from weft.serving.weights import locate
from weft.training import devices
from weft.training.diffusion import spec as diffusion
from weft.training.diffusion import spec as diffusion_kinds
from weft.training.distillation import DistillationOptions
from weft.training.drafters import session, spec
from weft.training.frame import StepProgress

__all__ = ["chat_model"]

SCHEDULE = {"steps": 3, "texts": 2, "keep_every": 1}
SMALL = {
    "inner": 32,
    "vocabulary": 64,
    "unrolled": 2,
    "tokens": 64,
    "heads": 2,
    "prompts": 2,
    "ahead": 2,
    "points": 4,
    "places": 4,
    "rank": 2,
    "block": 4,
}
"""Settings of drafters, where they have one of that name."""


@pytest.fixture
def trains(device: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(devices, "_DEVICE", re.compile(f"cpu|{device}"))
    return device


def in_two_parts(
    train: Callable[[bool, Callable[[object], None], Callable[[], bool]], object],
    works: str = "aten.addcdiv_.default",
) -> None:
    """Two steps, then the last of three."""
    losses: list[float] = []

    def hear(news: object) -> None:
        if isinstance(news, StepProgress):
            losses.append(news.loss)

    for resume, after in ((False, 2), (True, 3)):
        operations.clear()
        # whoever is asked whether to stop has not heard of that step yet
        trained = train(resume, hear, lambda after=after: len(losses) + 1 == after < 3)
        assert (trained is not None) == resume
        assert len(losses) == after
        assert all(loss == loss for loss in losses)
        assert operations[works], "it computes there"


@pytest.mark.parametrize("name", spec.KINDS)
def test_a_drafter_is_trained_there(
    name: str, trains: str, tiny_path: Path, tmp_path: Path
) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n".join(f"the fox and {n}" for n in range(4)), "utf-8")
    order = session.DrafterTrainingJob(
        kind=name,
        model=tiny_path,
        prompts=str(prompts),
        out=tmp_path / "out",
        writing=DistillationOptions(max_tokens=12),
        schedule=SCHEDULE,
        settings={key: SMALL.get(key, n) for key, n in spec.kind_of(name).settings.items()},
        threads=1,
        device=trains,
    )

    in_two_parts(
        lambda resume, hear, stop: session.train(order, resume=resume, on_news=hear, stop=stop)
    )
    trained_drafter.load(order.out, name, Network.load(tiny_path, EXACT))


ORDERS: dict[str, dict[str, int]] = {
    "block": {"block": 4, "rank": 2, "grow": 1, "held_out": 2},
    "block, all weights": {"block": 4, "rank": 0, "grow": 1, "held_out": 2},
    "dparallel": {"texts": 2, "slots": 4, "examined": 1},
    "dparallel, thin maps": {"texts": 2, "slots": 4, "examined": 1, "rank": 2},
    "learn2pd": {"texts": 6, "slots": 8, "hidden": 6},
}
"""By kind, and what is special: settings."""


@pytest.mark.parametrize("what", ORDERS)
def test_a_diffusion_model_is_trained_there(
    what: str, trains: str, chat_model: Path, tmp_path: Path
) -> None:
    kind = diffusion_kinds.kind_of(what.partition(",")[0])
    order = diffusion.DiffusionTrainingJob(
        kind.name,
        tmp_path / "out",
        model=chat_model if kind.name == "block" else locate("list-full"),
        schedule={**SCHEDULE, "longest": 400},
        settings=ORDERS[what],
        threads=1,
        device=trains,
    )

    in_two_parts(
        lambda resume, hear, stop: kind.train(
            order, resume, diffusion.TrainingListener(hear, stop)
        ),
        # a filter is so small that only what it learns from is computed there
        *(["aten.linear.default"] if kind.name == "learn2pd" else []),
    )
    assert json.loads((order.out / "config.json").read_text("utf-8"))
    assert any(tensor_file.read(file)[0] for file in order.out.glob("*.safetensors"))


@pytest.mark.parametrize("name", diffusion_kinds.KINDS)
def test_no_kind_is_left_out(name: str, trains: str, tmp_path: Path) -> None:
    """One that cannot be trained there says so."""
    kind = diffusion_kinds.kind_of(name)
    if "device" in kind.takes:
        assert any(what.partition(",")[0] == name for what in ORDERS)
        return
    asked = diffusion.DiffusionTrainingJob(
        name, tmp_path / "out", "full", locate("list-full"), settings={}, device=trains
    )
    with pytest.raises(InputError, match=r"has no use for|is trained on the CPU"):
        kind.train(asked, False, diffusion.TrainingListener())
