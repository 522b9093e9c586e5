from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
import torch

from weft.training.corpus import TokenBatch, TrainingText, batch_of
from weft.training.teacher import Teacher, TeacherStates

TEXTS = [
    TrainingText((5, 6, 7, 8, 9, 20, 21, 33), 3),
    TrainingText((100, 4, 60, 61, 5), 2),
    TrainingText((1, 2, 3), 1),
]


class Counting(Teacher):
    reads = 0

    def states(self, batch: TokenBatch, taps: Collection[int]) -> dict[int, torch.Tensor]:
        self.reads += 1
        return super().states(batch, taps)


@pytest.fixture
def teacher(tiny_path: Path) -> Counting:
    loaded = Counting.load(tiny_path)
    assert isinstance(loaded, Counting)
    return loaded


def test_a_text_is_read_once_and_the_same_in_every_batch(teacher: Counting) -> None:
    remembered = TeacherStates(teacher)
    first = remembered.of(batch_of(TEXTS[:2], 99))[teacher.layers]
    assert teacher.reads == 2
    again = remembered.of(batch_of([TEXTS[1], TEXTS[0], TEXTS[2]], 99))[teacher.layers]
    assert teacher.reads == 3
    assert torch.equal(first[0], again[1])
    assert torch.equal(first[1], again[0])
    assert not first[1, 5:].any()
    fresh = TeacherStates(teacher).of(batch_of([TEXTS[2], TEXTS[1]], 99))[teacher.layers]
    assert torch.equal(fresh[1], again[0, :5])
    whole = teacher.states(batch_of(TEXTS[:1], 99), (3,))[3]
    torch.testing.assert_close(first[:1], whole, rtol=0.05, atol=0.05)  # bfloat16


def test_what_has_no_room_is_read_again(teacher: Counting) -> None:
    remembered = TeacherStates(teacher, most_bytes=8 * teacher.width * 2 + 1)
    for _ in range(3):
        remembered.of(batch_of(TEXTS[:2], 99))[teacher.layers]
    assert teacher.reads == 4  # the longer text has room, the other is read three times
