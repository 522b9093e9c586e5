"""Layers, maps and placeholders: a training in pieces ends where one in one go does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from weft.training.corpus import Corpus, TrainingText
from weft.training.drafters.spec import kind_of
from weft.training.frame import Schedule, Trainer
from weft.training.teacher import Teacher

SETTINGS = {
    "dflash": {"block": 3, "layers": 1, "inner": 16, "vocabulary": 90, "places": 4},
    "eagle": {"inner": 32, "vocabulary": 90, "unrolled": 2},
    "hidden_transfer": {"places": 4},
    "lexical_units": {"places": 4, "rank": 2},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_training_in_pieces_is_one(tiny_path: Path, tmp_path: Path, name: str) -> None:
    teacher = Teacher.load(tiny_path)
    corpus = Corpus(
        [TrainingText(tuple((n * 5 + at * at) % 90 for at in range(12 + n)), 3) for n in range(5)]
    )
    kind = kind_of(name)
    schedule = Schedule(steps=4, texts=2, longest=64, rate=1e-2, keep_every=2)

    def begun() -> tuple[torch.nn.Module, Trainer]:
        course = kind.begin(teacher, corpus, kind.set_to(SETTINGS[name]), 1)
        return course.module, Trainer(course, corpus, schedule, tmp_path / "checkpoint")

    whole, trainer = begun()
    assert trainer.run()
    _, first = begun()
    assert not first.run(stop=lambda: first.step == 2)
    module, second = begun()
    second.resume()
    assert second.run()
    for parameter, wanted in zip(module.parameters(), whole.parameters(), strict=True):
        assert torch.equal(parameter, wanted)
    assert any(
        (a != b).any() for a, b in zip(whole.parameters(), begun()[0].parameters(), strict=True)
    )
