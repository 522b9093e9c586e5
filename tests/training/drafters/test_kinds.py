from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from weft.core.errors import InputError
from weft.training.corpus import Corpus, TrainingText, batch_of
from weft.training.drafters.learned_rows import RankAccuracy
from weft.training.drafters.spec import KINDS, kind_of
from weft.training.frame import Schedule, Trainer
from weft.training.teacher import Teacher

OURS = ("medusa", "pass", "ppd")


@pytest.fixture(scope="module")
def teacher(tiny_path: Path) -> Teacher:
    return Teacher.load(tiny_path)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """Texts that go round and round, so that they can be learnt."""
    line = [11, 40, 7, 90, 33, 61]
    texts = [(line * 4)[start : start + 16] for start in range(6)]
    return Corpus([TrainingText(tuple(text), 4) for text in texts])


def test_accuracy_counts_ranks() -> None:
    accuracy = RankAccuracy(2, 2)
    logits = torch.tensor([[3.0, 2.0, 1.0]] * 4)
    accuracy.add(0, logits, torch.tensor([0, 1, 2, -1]))
    accuracy.add(0, logits[:1], torch.tensor([1]))
    assert accuracy.table() == [[0.2, 0.4], [0.0, 0.0]]


@pytest.mark.parametrize("name", OURS)
def test_the_loss_is_that_of_the_definition(name: str, teacher: Teacher, corpus: Corpus) -> None:
    kind = kind_of(name)
    course = kind.begin(teacher, corpus, {**kind.settings, "points": 40}, 0)
    batch = batch_of(corpus.texts, 99)
    loss = course.loss(batch, np.random.default_rng(0))
    assert loss.ndim == 0
    assert torch.equal(loss, course.loss(batch, np.random.default_rng(0)))
    loss.backward()
    grads = [p.grad for p in course.module.parameters() if p.grad is not None]
    assert grads
    assert all(bool(grad.isfinite().all()) for grad in grads)
    empty = course.loss(batch_of(corpus.texts, 3), np.random.default_rng(0))
    assert float(empty.detach()) == 0.0
    empty.backward()


def test_the_loss_of_untrained_medusa_heads_is_the_model_s_own(
    teacher: Teacher, corpus: Corpus
) -> None:
    """At first every head says what the model says of the next token."""
    kind = kind_of("medusa")
    course = kind.begin(teacher, corpus, {"heads": 2, "tokens": 10_000, "form": 1}, 0)
    batch = batch_of(corpus.texts, 99)
    logs = teacher.head(teacher.states(batch, (3,))[3]).log_softmax(-1)
    expected = 0.0
    for head, weight in ((0, 1.0), (1, 0.8)):
        ahead = 2 + head
        rows = range(3, 16 - ahead)  # from the last token of the prompt on
        picked = [
            float(logs[text, row, batch.tokens[text, row + ahead]])
            for text in range(6)
            for row in rows
        ]
        expected -= weight * float(np.mean(picked)) / 1.8
    loss = course.loss(batch, np.random.default_rng(0))
    assert float(loss.detach()) == pytest.approx(expected, rel=2e-2)  # products in bfloat16


@pytest.mark.parametrize("name", OURS)
def test_what_can_be_learnt_is_learnt(
    name: str, teacher: Teacher, corpus: Corpus, tmp_path: Path
) -> None:
    kind = kind_of(name)
    small = {"heads": 2, "tokens": 64, "prompts": 2, "ahead": 2, "points": 8, "form": 1}
    settings = {key: small[key] for key in kind.settings}
    course = kind.begin(teacher, corpus, settings, 0)
    before = course.loss(batch_of(corpus.texts, 99), np.random.default_rng(0))
    rate = 0.02 if name == "medusa" else 0.1
    Trainer(course, corpus, Schedule(steps=60, texts=6, rate=rate), tmp_path / "c").run()
    with torch.no_grad():
        after = course.loss(batch_of(corpus.texts, 99), np.random.default_rng(0))
        made = course.made(corpus)
    assert float(after) < 0.7 * float(before.detach())
    accuracy = made.settings["accuracy"]
    assert isinstance(accuracy, list)
    assert len(accuracy) == 2
    assert all(0.0 <= share <= 1.0 for row in accuracy for share in row)
    assert all(value.dtype in (torch.float16, torch.int32) for value in made.tensors.values())
    if name == "medusa":
        assert accuracy[0][0] > 0.9


def test_settings_are_checked() -> None:
    kind = kind_of("medusa")
    assert kind.set_to({"heads": 2}) == {"heads": 2, "tokens": 8192, "form": 1}
    with pytest.raises(InputError, match="no setting 'prompts'") as refused:
        kind.set_to({"prompts": 2})
    assert refused.value.hint == "there is form, heads, tokens"
    with pytest.raises(InputError, match="heads must be a whole number from 1"):
        kind.set_to({"heads": 0})


def test_kinds_go_by_their_names() -> None:
    for name in KINDS:
        kind = kind_of(name)
        assert kind.name == name
        assert kind.summary
    with pytest.raises(InputError, match="no drafter 'medussa'") as refused:
        kind_of("medussa")
    assert "medusa" in str(refused.value.hint)
