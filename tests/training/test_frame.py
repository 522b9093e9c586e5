from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from weft.core.errors import InputError
from weft.decoding import tensor_file
from weft.training.corpus import Corpus, TokenBatch, TrainingText
from weft.training.frame import Schedule, StepProgress, Trainer

SCHEDULE = Schedule(steps=10, texts=2, longest=8, rate=0.05, decay=0.01, keep_every=4, seed=3)


class Guess:
    """Learns the next token of a line of numbers, from noise that it draws itself."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.module = torch.nn.Sequential(torch.nn.Embedding(6, 4), torch.nn.Linear(4, 6))

    def loss(self, batch: TokenBatch, chance: np.random.Generator) -> torch.Tensor:
        noise = torch.from_numpy(chance.normal(size=6)).float()
        logits = self.module(batch.tokens[:, :-1]) + 0.1 * noise
        wanted = batch.tokens[:, 1:].masked_fill(~batch.answered[:, 1:], -100)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())


@pytest.fixture
def corpus() -> Corpus:
    return Corpus([TrainingText((1, 2, *range(3, 3 + n % 3), n % 6), 1) for n in range(9)])


def learnt(lesson: Guess) -> list[float]:
    return [float(n) for p in lesson.module.parameters() for n in p.detach().flatten()]


def test_in_pieces_as_in_one_go_bit_for_bit(corpus: Corpus, tmp_path: Path) -> None:
    whole = Guess()
    assert Trainer(whole, corpus, SCHEDULE, tmp_path / "a").run()
    steps: list[StepProgress] = []
    first = Trainer(Guess(), corpus, SCHEDULE, tmp_path / "b")
    assert not first.run(steps.append, stop=lambda: len(steps) == 4)  # the fifth is the last
    assert first.step == 5
    other = Guess()
    with torch.no_grad():
        for parameter in other.module.parameters():
            parameter.zero_()
    second = Trainer(other, corpus, SCHEDULE, tmp_path / "b")
    second.resume()
    assert second.step == 5
    assert second.run(steps.append)
    assert learnt(other) == learnt(whole)
    assert [progress.step for progress in steps] == list(range(1, 11))


def test_it_learns(corpus: Corpus, tmp_path: Path) -> None:
    losses: list[float] = []
    schedule = Schedule(steps=60, texts=3, longest=8, rate=0.1)
    Trainer(Guess(), corpus, schedule, tmp_path / "c").run(lambda p: losses.append(p.loss))
    assert np.mean(losses[-5:]) < 0.6 * np.mean(losses[:5])


def test_a_checkpoint_every_few_steps(corpus: Corpus, tmp_path: Path) -> None:
    there: list[int] = []
    path = tmp_path / "c"

    def look(progress: StepProgress) -> None:
        if path.exists():
            there.append(progress.step)

    Trainer(Guess(), corpus, SCHEDULE, path).run(look)
    assert there == [4, 5, 6, 7, 8, 9, 10]
    later = Trainer(Guess(), corpus, SCHEDULE, path)
    later.resume()
    assert later.step == 8
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


def test_a_checkpoint_that_fails_to_be_written_leaves_the_one_before(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c"
    trainer = Trainer(Guess(), corpus, SCHEDULE, path)
    trainer.run(stop=lambda: True)
    before = path.read_bytes()

    def full(tensors: object, file: Path, notes: object) -> None:
        Path(file).write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr("weft.decoding.tensor_file.save_file", full)
    with pytest.raises(OSError, match="disk full"):
        trainer.keep()
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


def test_progress_counts_time_and_tokens_of_this_run(corpus: Corpus, tmp_path: Path) -> None:
    ticks = iter(float(n) for n in range(100))
    steps: list[StepProgress] = []
    trainer = Trainer(Guess(), corpus, SCHEDULE, tmp_path / "c", clock=lambda: next(ticks))
    trainer.step = 6
    trainer.run(steps.append)
    assert [(p.step, p.elapsed_s, p.remaining_s) for p in steps[:2]] == [
        (7, 1.0, 3.0),
        (8, 2.0, 2.0),
    ]
    assert steps[1].tokens_per_s == steps[1].tokens / 2.0 > 0.0
    assert steps[-1].remaining_s == 0.0


def test_the_rate_rises_then_falls() -> None:
    schedule = Schedule(steps=100, rate=1.0, warm_up=0.1)
    rates = [schedule.rate_at(step) for step in range(100)]
    top = rates.index(max(rates))
    assert top == 10
    assert max(rates) == pytest.approx(1.0)
    assert rates[:11] == sorted(rates[:11])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert 0.0 < rates[-1] < 0.02
    assert 0.0 < Schedule(steps=1, rate=1.0, warm_up=0.0).rate_at(0) <= 1.0


@pytest.mark.parametrize(
    "wrong",
    [{"steps": 0}, {"steps": 1, "rate": 0.0}, {"steps": 1, "rate": float("nan")},
     {"steps": 1, "warm_up": 1.0}, {"steps": 1, "clip": -1.0}, {"steps": 1, "texts": 0}],
)  # fmt: skip
def test_a_schedule_that_is_none(wrong: dict[str, float]) -> None:
    name, value = list(wrong.items())[-1]
    with pytest.raises(ValueError, match=f"nothing can be trained with {name} {value}: it is "):
        Schedule(**wrong)  # type: ignore[arg-type]


class TestBadCheckpoints:
    @pytest.fixture
    def path(self, corpus: Corpus, tmp_path: Path) -> Path:
        Trainer(Guess(), corpus, SCHEDULE, tmp_path / "c").run(stop=lambda: True)
        return tmp_path / "c"

    def test_none(self, corpus: Corpus, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no checkpoint"):
            Trainer(Guess(), corpus, SCHEDULE, tmp_path / "x").resume()

    def test_broken(self, corpus: Corpus, path: Path) -> None:
        path.write_bytes(path.read_bytes()[:100])
        with pytest.raises(InputError, match="no checkpoint"):
            Trainer(Guess(), corpus, SCHEDULE, path).resume()

    def test_of_another_training(self, corpus: Corpus, path: Path) -> None:
        with pytest.raises(InputError, match=f"another training: steps {SCHEDULE.steps}, not 2000"):
            Trainer(Guess(), corpus, replace(SCHEDULE, steps=2000), path).resume()

    @pytest.mark.parametrize("told", ["{", "[]", "{}", '"steps"'])
    def test_of_one_that_nobody_can_read(self, corpus: Corpus, path: Path, told: str) -> None:
        save_file(load_file(path), path, {"step": "1", "schedule": told})
        with pytest.raises(InputError, match="another training") as refused:
            Trainer(Guess(), corpus, SCHEDULE, path).resume()
        assert refused.value.hint is not None
        assert str(path) in refused.value.hint

    def test_of_other_parameters(self, corpus: Corpus, path: Path) -> None:
        tensors = {k: v for k, v in load_file(path).items() if k != "learnt.0.weight"}
        save_file(tensors, path, {"step": "1", "schedule": SCHEDULE.as_json})
        with pytest.raises(InputError, match="fits no such training"):
            Trainer(Guess(), corpus, SCHEDULE, path).resume()

    def test_of_another_shape(self, corpus: Corpus, path: Path) -> None:
        tensors = load_file(path) | {"learnt.1.bias": torch.zeros(1)}
        save_file(tensors, path, {"step": "1", "schedule": SCHEDULE.as_json})
        with pytest.raises(InputError, match=r"1\.bias is \[1\], not \[6\]"):
            Trainer(Guess(), corpus, SCHEDULE, path).resume()


def test_a_loss_that_is_no_number_ends_it(corpus: Corpus, tmp_path: Path) -> None:
    class Wild(Guess):
        def loss(self, batch: TokenBatch, chance: np.random.Generator) -> torch.Tensor:
            return super().loss(batch, chance) * float("inf")

    with pytest.raises(InputError, match="step 0: the loss is inf"):
        Trainer(Wild(), corpus, SCHEDULE, tmp_path / "c").run()


def test_a_disk_without_room_is_an_error_of_the_disk(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_given: object) -> None:
        raise SafetensorError("I/O error: No space left on device")

    monkeypatch.setattr(tensor_file, "save_file", full)
    with pytest.raises(OSError, match=r"c cannot be written: .*No space left"):
        Trainer(Guess(), corpus, SCHEDULE, tmp_path / "c").run(stop=lambda: True)
    assert not list(tmp_path.iterdir())
