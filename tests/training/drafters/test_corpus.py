from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from weft.core.errors import InputError
from weft.training import corpus as files
from weft.training.corpus import Corpus, TrainingText, batch_of

TEXTS = st.lists(st.integers(0, 49), min_size=2, max_size=9).flatmap(
    lambda tokens: st.builds(TrainingText, st.just(tuple(tokens)), st.integers(1, len(tokens) - 1))
)


def test_a_batch_says_what_is_text_and_what_is_answer() -> None:
    batch = batch_of([TrainingText((5, 6, 7), 2), TrainingText((1, 2, 3, 4, 9), 1)], longest=4)
    assert batch.tokens.tolist() == [[5, 6, 7, 0], [1, 2, 3, 4]]
    assert batch.there.tolist() == [[True, True, True, False], [True] * 4]
    assert batch.answered.tolist() == [[False, False, True, False], [False, True, True, True]]


@given(texts=st.lists(TEXTS, min_size=1, max_size=12), size=st.integers(1, 5))
def test_batches_hold_every_text_once(texts: list[TrainingText], size: int) -> None:
    rows = [
        tuple(tokens[there].tolist())
        for batch in Corpus(texts).in_batches(size, 100)
        for tokens, there in zip(batch.tokens, batch.there, strict=True)
    ]
    assert sorted(rows) == sorted(text.tokens for text in texts)


@given(texts=st.lists(TEXTS, min_size=1, max_size=12), seed=st.integers(0, 99))
def test_what_is_drawn_is_of_about_one_length(texts: list[TrainingText], seed: int) -> None:
    batch = Corpus(texts).draw(np.random.default_rng(seed), 2, 100)
    again = Corpus(texts).draw(np.random.default_rng(seed), 2, 100)
    assert torch.equal(batch.tokens, again.tokens)
    lengths = sorted(batch.there.sum(1).tolist())
    between = [n for n in (len(text.tokens) for text in texts) if lengths[0] < n < lengths[-1]]
    assert not between


def test_every_tenth_is_held_out() -> None:
    corpus = Corpus([TrainingText((n, n), 1) for n in range(25)])
    rest, held = corpus.split(10)
    assert [text.tokens[0] for text in held.texts] == [9, 19]
    assert len(rest.texts) == 23
    assert corpus.answer_tokens == 25
    few, same = Corpus(corpus.texts[:3]).split(10)
    assert few.texts == same.texts == corpus.texts[:3]
    with pytest.raises(InputError, match="no texts"):
        Corpus([])


def test_frequent_tokens_are_those_of_answers() -> None:
    corpus = Corpus([TrainingText((9, 9, 9, 4, 4, 7), 3), TrainingText((8, 7), 1)])
    assert corpus.frequent(2, 12).tolist() == [4, 7]
    assert corpus.frequent(4, 12).tolist() == [0, 1, 4, 7]


@given(texts=st.dictionaries(st.integers(0, 99), TEXTS, max_size=6))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, texts: dict[int, TrainingText]
) -> None:
    path = tmp_path_factory.mktemp("corpus") / "c.safetensors"
    files.write(path, texts, "here")
    assert files.read(path, "here") == texts


def test_files_that_are_no_corpus(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    files.write(path, {0: TrainingText((1, 2), 1)}, "here")
    with pytest.raises(InputError, match="other prompts, by another model"):
        files.read(path, "there")
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read") as refused:
        files.read(path, "here")
    assert "delete the file" in str(refused.value.hint)
    one, also = torch.tensor([1]), torch.tensor([1])
    whole = {
        "prompts": one,
        "answers": also,
        "ends": torch.tensor([2]),
        "tokens": torch.tensor([1, 2]),
    }
    for name, wrong in [("ends", torch.tensor([9])), ("answers", torch.tensor([2])),
                        ("answers", torch.tensor([0])), ("prompts", torch.tensor([1, 2])),
                        ("ends", torch.tensor(2)), ("tokens", None)]:  # fmt: skip
        tensors = {k: v for k, v in {**whole, name: wrong}.items() if v is not None}
        save_file(tensors, path, {"origin": "here"})
        with pytest.raises(InputError, match="holds no texts"):
            files.read(path, "here")
