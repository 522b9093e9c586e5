"""A whole training on a tiny model: it learns, only answers count, and pieces give the whole."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from weft.core.errors import CapabilityError, InputError, ModelNotFound
from weft.core.ports import ModelRequest, Sampling
from weft.core.ports.metering import complete
from weft.core.values import Message
from weft.decoding import tensor_file
from weft.planner.compact import COMPACT
from weft.serving.local import LocalModel, LocalOptions
from weft.training.corpus import batch_of
from weft.training.diffusion.spec import CHECKPOINT, TrainingListener
from weft.training.frame import Schedule, StepProgress
from weft.training.planner.objective import PlannerObjective
from weft.training.planner.session import ADAPTER, CURVE, SNAPSHOTS, PlannerTrainingJob, train
from weft.training.planner.texts import (
    PlannerBatches,
    PlannerExample,
    PlannerText,
    digest,
    encode,
)

NAMES = ("tea", "milk", "rice", "salt", "corn", "oats")
SCHEDULE = Schedule(steps=1, texts=3, longest=256, rate=0.02, keep_every=2, seed=4, warm_up=0.0)


def examples(calls: int = 1) -> list[PlannerExample]:
    def answer(name: str) -> str:
        lines = [f'{number}. price(item="{name}")' for number in range(1, calls + 1)]
        return "\n".join([*lines, f"{calls + 1}. join()"])

    return [
        PlannerExample(
            (("user", f"price(item)\nQuestion: the price of {name}"),), answer(name), calls
        )
        for name in NAMES
    ]


def job(base: Path, out: Path, **given: Any) -> PlannerTrainingJob:
    made = PlannerTrainingJob(base, out, examples(), examples(2)[:2], COMPACT, SCHEDULE, rank=4,
                              epochs=3, threads=1)  # fmt: skip
    return replace(made, **given)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return tensor_file.read(folder / ADAPTER)[0]


def test_a_training_learns_and_leaves_a_planner(tiny_path: Path, tmp_path: Path) -> None:
    losses: list[float] = []

    def note(news: object) -> None:
        if isinstance(news, StepProgress):
            losses.append(news.loss)

    trained = train(job(tiny_path, tmp_path / "out", epochs=12), False, TrainingListener(note))
    assert trained is not None
    assert trained.steps == len(losses) == 24
    assert np.mean(losses[-4:]) < 0.7 * np.mean(losses[:4])
    config = json.loads((tmp_path / "out" / "config.json").read_text())["weft_adapter"]
    assert config["plan_form"] == COMPACT
    assert config["trained"]["steps"] == 24
    curve = [json.loads(line) for line in (tmp_path / "out" / CURVE).read_text().splitlines()]
    assert [row["step"] for row in curve] == list(range(2, 25, 2))
    assert not (tmp_path / "out" / CHECKPOINT).exists()
    assert not (tmp_path / "out" / SNAPSHOTS).exists()


@pytest.mark.parametrize("stop_after", [1, 3, 6])
def test_in_pieces_as_in_one_go_bit_for_bit(
    stop_after: int, tiny_path: Path, tmp_path: Path
) -> None:
    whole = train(job(tiny_path, tmp_path / "whole"), False, TrainingListener())
    assert whole is not None
    steps: list[int] = []

    def note(news: object) -> None:
        if isinstance(news, StepProgress):
            steps.append(news.step)

    pieces = job(tiny_path, tmp_path / "pieces")
    stopping = TrainingListener(note, lambda: len(steps) >= stop_after - 1)
    assert train(pieces, False, stopping) is None
    assert train(pieces, True, TrainingListener(note)) is not None
    assert steps == list(range(1, 7))
    first, second = weights(tmp_path / "whole"), weights(tmp_path / "pieces")
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_only_answers_count(tiny_path: Path) -> None:
    """Other prompts of the same length change nothing but what the answers are conditioned on."""
    text = encode(tiny_path, examples()[:1], 256)[0].text
    objective = PlannerObjective(tiny_path, "cpu", 4)
    batch = batch_of([text], 256)
    logits, goals, _ = objective._predicted(batch)
    assert goals.tolist() == list(text.tokens[text.answer :])
    rows = [len(text.tokens) - text.answer, objective._teacher.vocabulary_size]
    assert list(logits.shape) == rows
    whole = objective._teacher.model(input_ids=batch.tokens).logits[0, text.answer - 1 : -1]
    torch.testing.assert_close(logits, whole.float(), atol=1e-2, rtol=1e-2)


def test_a_batch_is_its_texts_one_by_one(tiny_path: Path) -> None:
    """The oracle: padding, and the texts beside it, change the loss of no text."""
    texts = [each.text for each in encode(tiny_path, [*examples(3)[:2], *examples()[2:]], 256)]
    assert len({len(text.tokens) for text in texts}) > 1
    objective = PlannerObjective(tiny_path, "cpu", 4)
    with torch.no_grad():
        for one in objective.module.maps:  # else the update is zero, and so never wrong
            one.up.copy_(torch.randn_like(one.up) * 0.1)
        together, goals, of = objective._predicted(batch_of(texts, 256))
        for number, text in enumerate(texts):
            alone, wanted, _ = objective._predicted(batch_of([text], 256))
            assert torch.equal(goals[of == number], wanted)
            torch.testing.assert_close(together[of == number], alone, atol=3e-2, rtol=3e-2)


def test_the_merged_planner_writes_what_the_trained_one_does(
    tiny_path: Path, tmp_path: Path
) -> None:
    """Loaded by `LocalModel`. The end token of the tiny model never wins: its embedding is 0."""
    base = tmp_path / "base"
    base.symlink_to(tiny_path)
    one = examples()[:1]
    made = job(base, tmp_path / "out", epochs=60, rank=16, train=one, test=one)
    trained = train(made, False, TrainingListener())
    assert trained is not None
    assert trained.after.cross_entropy < 0.4

    async def written() -> str:
        model = LocalModel(tmp_path / "out", LocalOptions(threads=1))
        try:
            assert (await model.capabilities()).plan_form == COMPACT
            messages = tuple(Message("user", text) for _, text in one[0].messages)
            request = ModelRequest(messages, sampling=Sampling(48, 0.0))
            return (await complete(model, request)).text
        finally:
            await model.aclose()

    assert asyncio.run(written()).startswith(one[0].answer)


def test_snapshots_are_planners(tiny_path: Path, tmp_path: Path) -> None:
    train(job(tiny_path, tmp_path / "out", snapshots=True), False, TrainingListener())
    made = sorted(path.name for path in (tmp_path / "out" / SNAPSHOTS).iterdir())
    assert made == ["000002", "000004"]
    first, last = weights(tmp_path / "out" / SNAPSHOTS / "000002"), weights(tmp_path / "out")
    assert first.keys() == last.keys()
    assert any(not torch.equal(first[name], last[name]) for name in first)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rank": 5}, "another rank"),
        ({"train": examples(2)}, "another data"),
        ({"schedule": replace(SCHEDULE, rate=0.3)}, "rate"),
    ],
)
def test_another_training_is_not_resumed(
    change: dict[str, Any], said: str, tiny_path: Path, tmp_path: Path
) -> None:
    first = job(tiny_path, tmp_path / "out")
    assert train(first, False, TrainingListener(stop=lambda: True)) is None
    with pytest.raises(InputError, match=said):
        train(replace(first, **change), True, TrainingListener())


def test_an_adapter_of_another_base_is_refused(tiny_path: Path, tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.symlink_to(tiny_path)
    train(job(base, tmp_path / "out", epochs=1), False, TrainingListener())
    file = tmp_path / "out" / "config.json"
    config = json.loads(file.read_text())

    async def first_word() -> None:
        model = LocalModel(tmp_path / "out", LocalOptions(threads=1))
        try:
            await complete(model, ModelRequest((Message("user", "hi"),), sampling=Sampling(1)))
        finally:
            await model.aclose()

    config["weft_adapter"]["target"]["digest"] = "0" * 64
    file.write_text(json.dumps(config))
    with pytest.raises(CapabilityError, match="another model"):
        asyncio.run(first_word())
    config["weft_adapter"]["base"] = "../../etc"
    file.write_text(json.dumps(config))
    with pytest.raises(CapabilityError, match="no name of a model"):
        LocalModel(tmp_path / "out")
    config["weft_adapter"]["base"] = "nobody-has-this"
    file.write_text(json.dumps(config))
    with pytest.raises(ModelNotFound, match="nobody-has-this"):
        LocalModel(tmp_path / "out")


def numbered(lengths: list[int], calls: list[int]) -> list[PlannerText]:
    from weft.training.corpus import TrainingText

    return [
        PlannerText(TrainingText((number, *[1] * length), 1), count)
        for number, (length, count) in enumerate(zip(lengths, calls, strict=True))
    ]


def dealt(batches: PlannerBatches, steps: int) -> list[list[int]]:
    rng = np.random.default_rng(0)
    return [batches.draw(rng, 0, 999).tokens[:, 0].tolist() for _ in range(steps)]


def test_every_epoch_has_every_text_once_in_another_order() -> None:
    rng = np.random.default_rng(1)
    texts = numbered(rng.integers(3, 40, 50).tolist(), [1] * 50)
    batches = PlannerBatches(texts, 4, 7)
    first, second = dealt(batches, 13), dealt(batches, 13)
    assert sorted(chain(*first)) == sorted(chain(*second)) == list(range(50))
    assert first != second
    later = PlannerBatches(texts, 4, 7)
    later.step = 13
    assert dealt(later, 13) == second
    assert dealt(PlannerBatches(texts, 4, 8), 13) != first


def test_several_calls_come_later_in_the_first_epoch() -> None:
    calls = [1, 2, 3, 4] * 500
    batches = PlannerBatches(numbered([5] * 2000, calls), 10, 0)
    places: dict[int, list[int]] = {}
    for place, numbers in enumerate(dealt(batches, 200)):
        for number in numbers:
            places.setdefault(calls[number], []).append(place)
    means = [float(np.mean(places[count])) for count in (1, 2, 3, 4)]
    assert means == sorted(means)
    assert means[3] - means[0] > 20
    again = dealt(batches, 200)
    where = [
        np.mean([at for at, row in enumerate(again) for n in row if calls[n] == c]) for c in (1, 4)
    ]
    assert abs(where[0] - where[1]) < 12


def test_long_items_are_left_out_and_too_few_are_told(tiny_path: Path) -> None:
    long = PlannerExample((("user", "word " * 400),), "1. join()", 0)
    kept = encode(tiny_path, [*examples(), long], 256)
    assert len(kept) == len(examples())
    assert digest(kept) != digest(kept[1:])
    with pytest.raises(InputError, match="no item has at most 256"):
        encode(tiny_path, [long], 256)


def test_a_planner_is_trained_further(tiny_path: Path, tmp_path: Path) -> None:
    """From where it was: at a rate of almost nothing it stays what it is."""
    base = tmp_path / "base"
    base.symlink_to(tiny_path)
    first = job(base, tmp_path / "first", epochs=1)
    assert train(first, False, TrainingListener()) is not None
    slow = replace(SCHEDULE, rate=1e-9)
    again = replace(
        first, model=tmp_path / "first", out=tmp_path / "second", schedule=slow, find=None
    )
    assert train(again, False, TrainingListener()) is not None
    before, after = weights(tmp_path / "first"), weights(tmp_path / "second")
    assert all(torch.allclose(before[name], after[name], atol=1e-3) for name in before)
    config = json.loads((tmp_path / "second" / "config.json").read_text())["weft_adapter"]
    assert config["base"] == "base"
    assert config["trained"]["before"]["steps"] == 2
    other = replace(again, out=tmp_path / "third", rank=5)
    with pytest.raises(InputError, match="another rank"):
        train(other, False, TrainingListener())
