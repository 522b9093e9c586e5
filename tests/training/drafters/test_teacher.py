from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.serving.local.playback import EXACT
from weft.core.errors import InputError
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.speculative.trained_drafter import Fingerprint
from weft.training.corpus import TrainingText, batch_of
from weft.training.drafters.learned_rows import read_following
from weft.training.teacher import Teacher

TEXTS = [TrainingText((5, 6, 7, 8, 9, 20, 21, 33), 3), TrainingText((100, 4, 60, 61, 5), 2)]


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rounding of bfloat16, which would hide what is looked for."""
    place = "weft.training.drafters.learned_rows.mixed_precision"
    monkeypatch.setattr(place, lambda device: nullcontext())


@pytest.fixture(scope="module")
def teacher(tiny_path: Path) -> Teacher:
    return Teacher.load(tiny_path)


@pytest.fixture(scope="module")
def network(tiny_path: Path) -> Network:
    return Network.load(tiny_path, EXACT)


def test_it_sees_what_the_network_sees(teacher: Teacher, network: Network) -> None:
    """The layers have the same numbers, so that what is trained here works there."""
    assert Fingerprint.of(teacher) == Fingerprint.of(network)
    taps = (0, 1, network.layers)
    states = teacher.states(batch_of(TEXTS, 99), taps)
    for row, text in enumerate(TEXTS):
        read = network.forward([Span(0, range(len(text.tokens)), text.tokens, 1, taps=taps)])[0]
        for tap in taps:
            expected = read.hidden[tap].clone()
            torch.testing.assert_close(states[tap][row, : len(text.tokens)], expected)
        logits = teacher.head(states[network.layers][row, len(text.tokens) - 1])
        np.testing.assert_allclose(logits.numpy(), read.logits[0], rtol=1e-3, atol=1e-4)


def test_the_head_of_some_tokens(teacher: Teacher) -> None:
    hidden, ids = torch.randn(3, teacher.width), torch.tensor([7, 2, 300])
    torch.testing.assert_close(teacher.head(hidden, ids), teacher.head(hidden)[:, ids])


def test_rows_that_are_the_text_itself_come_to_what_the_text_comes_to(teacher: Teacher) -> None:
    batch = batch_of(TEXTS, 99)
    chance = np.random.default_rng(0)
    rows = torch.nn.Parameter(teacher.embed([0, 0]))
    # where the learnt rows are the embeddings of the very tokens that follow, both must agree
    for at in (3, 4):
        past = teacher.read(batch)
        following = batch.tokens[:, at + 1 : at + 3]
        embedded = torch.stack([teacher.embed(row.tolist()) for row in following])
        sees = torch.cat(
            [torch.arange(batch.tokens.shape[1]).expand(2, 2, -1) <= at,
             torch.tril(torch.ones(2, 2)).bool().expand(2, -1, -1)], -1
        )  # fmt: skip
        places = torch.tensor([[at + 1, at + 2]] * 2)
        made = teacher.onwards(past, embedded, places, sees)
        torch.testing.assert_close(made, past.hidden[:, at + 1 : at + 3])
    seen = read_following(teacher, rows, batch, 3, chance)
    assert seen.student.shape == seen.teacher.shape == (2, 6, teacher.width)


def test_points_stand_alone_and_their_targets_are_the_text(teacher: Teacher) -> None:
    """What several points come to together is what each comes to alone."""
    batch = batch_of(TEXTS[:1], 99)
    rows = torch.nn.Parameter(torch.randn(2, teacher.width))
    every = read_following(teacher, rows, batch, 5, np.random.default_rng(0))  # points 2 to 6
    tokens = TEXTS[0].tokens
    for point, at in enumerate(range(2, 7)):
        for distance in (0, 1):
            row, place = 2 * point + distance, at + 1 + distance
            assert bool(every.valid[0, row]) == (place + 1 < len(tokens))
            if every.valid[0, row]:
                assert every.wanted[0, row] == tokens[place + 1]
        past = teacher.read(batch)
        sees = torch.cat(
            [torch.arange(len(tokens)).expand(1, 2, -1) <= at,
             torch.tril(torch.ones(1, 2, 2)).bool()], -1
        )  # fmt: skip
        places = torch.tensor([[at + 1, at + 2]])
        alone = teacher.onwards(past, rows[None], places, sees)
        torch.testing.assert_close(every.student[0, 2 * point : 2 * point + 2], alone[0])


def test_the_past_of_a_text_does_not_reach_over_its_end(teacher: Teacher) -> None:
    """A shorter text in a batch comes to what it comes to alone."""
    rows = torch.nn.Parameter(torch.randn(2, teacher.width))
    short = batch_of(TEXTS[1:], 99)
    padded = batch_of([TEXTS[1], TEXTS[0]], 99)
    alone = read_following(teacher, rows, short, 3, np.random.default_rng(0))
    beside = read_following(teacher, rows, padded, 3, np.random.default_rng(0))
    assert alone.valid[0].tolist() == beside.valid[0].tolist()
    fine = alone.valid[0]
    torch.testing.assert_close(alone.student[0][fine], beside.student[0][fine])
    torch.testing.assert_close(alone.teacher[0][fine], beside.teacher[0][fine])
    assert torch.equal(alone.wanted[0][fine], beside.wanted[0][fine])


def test_only_the_rows_get_gradients(teacher: Teacher) -> None:
    rows = torch.nn.Parameter(torch.randn(2, teacher.width))
    seen = read_following(teacher, rows, batch_of(TEXTS, 99), 2, np.random.default_rng(1))
    seen.student[seen.valid].square().sum().backward()
    assert rows.grad is not None
    assert bool((rows.grad != 0).any(dim=1).all())
    assert not any(parameter.requires_grad for parameter in teacher.model.parameters())


def test_a_text_whose_answer_is_cut_off_teaches_nothing(teacher: Teacher) -> None:
    rows = torch.nn.Parameter(torch.randn(2, teacher.width))
    batch = batch_of([TrainingText((5, 6, 7, 8, 9), 4)], 3)
    assert not read_following(teacher, rows, batch, 2, np.random.default_rng(1)).valid.any()


def test_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no model to learn from"):
        Teacher.load(tmp_path)
