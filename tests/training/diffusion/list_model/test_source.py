from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.language import read_question
from weft.decoding.diffusion.oracle.languages import LANGUAGES, answer_table, random_question, valid
from weft.training.diffusion.list_model.questions import (
    ListSource,
    QuestionMix,
    draw_answer,
    draw_question,
    is_held_out,
)


@pytest.mark.parametrize("name", LANGUAGES)
def test_answers_that_are_drawn_are_valid_and_are_all_of_them(name: str) -> None:
    chance = np.random.default_rng(1)
    for _ in range(3):
        question = random_question(name, 3, chance)
        drawn = {draw_answer(question, chance) for _ in range(250)}
        assert all(valid(question, answer) for answer in drawn)
        assert drawn == {tuple(row) for row in answer_table(question).tolist()}


def test_answers_are_equally_likely() -> None:
    chance = np.random.default_rng(2)
    question = random_question("replace_random", 4, chance)
    counts = Counter(draw_answer(question, chance) for _ in range(4000))
    assert len(counts) == 4
    expected = 1000.0
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi_square < 16.3  # 0.1 % of 3 degrees of freedom


def test_what_is_held_out_is_never_learnt() -> None:
    chance = np.random.default_rng(3)
    seen = [draw_question("sort", 4, chance) for _ in range(60)]
    unseen = [draw_question("sort", 4, chance, unseen=True) for _ in range(60)]
    assert not any(is_held_out(question) for question in seen)
    assert all(is_held_out(question) for question in unseen)
    share = np.mean([is_held_out(random_question("copy", 4, chance)) for _ in range(2000)])
    assert 0.07 < share < 0.13


def test_order_does_not_decide_what_is_held_out() -> None:
    question = draw_question("copy", 5, np.random.default_rng(4), unseen=True)
    turned = type(question)("reverse", question.items[::-1])
    assert is_held_out(turned)


def test_a_batch_is_questions_with_valid_answers_and_ends() -> None:
    source, chance = ListSource(), np.random.default_rng(5)
    operations = set()
    for _ in range(40):
        batch = source.draw(chance, 8, 30)
        assert batch.tokens.shape[1] <= 30
        assert not (batch.answer & batch.end).any()
        assert batch.learnt_tokens == int(batch.answer.sum() + batch.end.sum())
        for tokens, answer, end in zip(
            batch.tokens.numpy(), batch.answer.numpy(), batch.end.numpy(), strict=True
        ):
            question = read_question(tokens[~(answer | end)].tolist())
            operations.add(question.operation)
            assert not is_held_out(question)
            assert valid(question, tokens[answer].tolist())
            assert (tokens[end] == words.EOS).all()
    assert operations >= {"copy", "sort", "insert_index", "shuffle"}


def test_the_same_chance_draws_the_same_texts() -> None:
    first, second = (ListSource().draw(np.random.default_rng(6), 4, 40) for _ in range(2))
    assert first.tokens.equal(second.tokens)


def test_a_mix_of_one_operation_and_size() -> None:
    source = ListSource(QuestionMix({"copy": 1.0}, {3: 1.0}))
    batch = source.draw(np.random.default_rng(7), 16, 40)
    for row, mine in zip(batch.tokens, batch.answer | batch.end, strict=True):
        question = read_question(row[~mine].tolist())
        assert (question.operation, len(question.items)) == ("copy", 3)
