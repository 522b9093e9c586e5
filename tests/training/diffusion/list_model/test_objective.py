from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from weft.decoding.diffusion.oracle import vocabulary as words
from weft.training.diffusion.list_model import network
from weft.training.diffusion.list_model import objectives as lessons
from weft.training.diffusion.list_model.objectives import (
    CausalObjective,
    MaskedObjective,
    block_causal,
    hidden,
)
from weft.training.diffusion.list_model.questions import ListBatch, ListSource, QuestionMix
from weft.training.frame import Schedule, Trainer

LETTERS = QuestionMix({"brackets": 1.0, "parity": 1.0}, {3: 1.0})


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def batch(texts: int = 8, seed: int = 0) -> ListBatch:
    return ListSource().draw(np.random.default_rng(seed), texts, 24)


@pytest.mark.parametrize("block", [0, 1, 4])
def test_a_dense_pass_is_the_model_s_own(block: int) -> None:
    model = network.new(64, 2, 0)
    ids = torch.randint(0, words.SIZE, (3, 11))
    sees = block_causal(11, block) if block else None
    wanted = torch.rand(3, 11) < 0.5
    found = model.lm_head(hidden(model, ids, wanted, sees))
    mask = torch.zeros(11, 11) if sees is None else torch.where(sees, 0.0, -torch.inf)
    expected = model(input_ids=ids, attention_mask=mask.expand(3, 1, 11, 11)).logits
    assert torch.allclose(found, expected[wanted], atol=1e-5)


def test_blocks_see_themselves_and_those_before() -> None:
    sees = block_causal(6, 4)
    assert sees[:4, :4].all()
    assert not sees[:4, 4:].any()
    assert sees[4:].all()


def test_masks_are_of_answers_only_and_complementary(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def heard(model: object, ids: torch.Tensor, masked: torch.Tensor, sees: object) -> torch.Tensor:
        read.append((ids, masked))
        return hidden(model, ids, masked, sees)

    monkeypatch.setattr(lessons, "hidden", heard)
    texts = batch(6)
    MaskedObjective(network.new(32, 1, 0)).loss(texts, np.random.default_rng(1))
    [(ids, masked)] = read
    ours = texts.answer | texts.end
    assert masked[:3].equal(ours[:3])
    assert (masked[3:6] ^ masked[6:]).equal(ours[3:])
    tokens = torch.cat([texts.tokens, texts.tokens[3:]])
    assert (ids[masked] == words.MASK).all()
    assert ids[~masked].equal(tokens[~masked])


def test_a_block_is_learnt_from_what_stands_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    masks = []

    def heard(model: object, ids: torch.Tensor, masked: torch.Tensor, sees: object) -> torch.Tensor:
        masks.append((masked, sees))
        return hidden(model, ids, masked, sees)

    monkeypatch.setattr(lessons, "hidden", heard)
    texts = batch(40)
    MaskedObjective(network.new(32, 1, 0), 4).loss(texts, np.random.default_rng(1))
    [(masked, sees)] = masks
    assert block_causal(texts.tokens.shape[1], 4).equal(sees)
    blocks = {tuple(np.unique(np.flatnonzero(row) // 4)) for row in masked.numpy()} - {()}
    assert all(len(touched) == 1 for touched in blocks)
    assert len(blocks) > 1


def test_goals_are_averages_over_the_answers_that_agree() -> None:
    source = ListSource(QuestionMix({"shuffle": 1.0}, {4: 1.0}))
    texts = source.draw(np.random.default_rng(0), 1, 40)
    [question] = texts.questions
    learnt = texts.answer | texts.end
    goals = lessons._goals(texts, torch.tensor([0]), learnt, ~learnt)
    assert torch.allclose(goals[:4, list(question.items)], torch.tensor(0.25))
    assert torch.allclose(goals.sum(dim=1), torch.ones(len(goals)))
    first = int(texts.answer[0].int().argmax())
    learnt[0, first] = False
    goals = lessons._goals(texts, torch.tensor([0]), learnt, ~learnt)
    assert (goals[:3, texts.tokens[0, first]] == 0.0).all()
    assert goals[:3].max() == pytest.approx(1 / 3)


def test_the_causal_loss_is_that_of_the_next_token() -> None:
    model = network.new(32, 1, 0)
    texts = ListSource(QuestionMix({"reverse": 1.0}, {4: 1.0})).draw(
        np.random.default_rng(0), 4, 40
    )
    logits = model(input_ids=texts.tokens).logits.log_softmax(-1)
    learnt = (texts.answer | texts.end)[:, 1:]
    chosen = logits[:, :-1].gather(2, texts.tokens[:, 1:, None])[..., 0]
    expected = float(-chosen[learnt].mean().detach())
    loss = CausalObjective(model).loss(texts, np.random.default_rng(0))
    assert float(loss.detach()) == pytest.approx(expected, abs=2e-2)  # bfloat16


@pytest.mark.parametrize("variant", ["full", "block", "ar"])
def test_it_learns(variant: str, tmp_path: Path) -> None:
    model = network.new(32, 1, 0)
    block = 0 if variant == "full" else 4
    lesson = CausalObjective(model) if variant == "ar" else MaskedObjective(model, block)
    losses: list[float] = []
    schedule = Schedule(steps=40, texts=12, longest=20, rate=3e-2)
    Trainer[ListBatch](lesson, ListSource(LETTERS), schedule, tmp_path / "c").run(
        lambda progress: losses.append(progress.loss)
    )
    assert np.mean(losses[-10:]) < 0.6 * np.mean(losses[:5])
