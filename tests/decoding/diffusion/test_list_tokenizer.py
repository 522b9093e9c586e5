"""Questions of the list languages as chats, and answers as text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="list models need weft[local]")

from weft.core.errors import ModelRequestError
from weft.core.values import Message
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.languages import LANGUAGES, random_question
from weft.serving.local.vocabulary import Vocabulary
from weft.training.diffusion.list_model.network import write_tokenizer


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    folder = tmp_path_factory.mktemp("lists")
    write_tokenizer(folder)
    (folder / "config.json").write_text('{"model_type": "llama"}', "utf-8")
    return Vocabulary.load(Path(folder), words.SIZE, frozenset({words.EOS}))


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_chat_is_the_prompt_of_its_question(vocabulary: Vocabulary, name: str) -> None:
    question = random_question(name, 4, np.random.default_rng(0))
    head, items, _ = str(question).split("<sep>")
    chat = (Message("user", f"{head.strip()} | {items.strip()}"),)
    assert vocabulary.encode_chat(chat) == list(question.prompt)


def test_every_word_is_a_token_and_special_ones_cannot_be_spelt(vocabulary: Vocabulary) -> None:
    for number, word in enumerate(words.TOKENS):
        text = vocabulary.bytes_of(number).decode()
        assert text == (f" {word}" if number > words.MASK else "")
    with pytest.raises(ModelRequestError):
        vocabulary.encode_plain("<mask>")


@pytest.mark.parametrize(
    "chat",
    [
        (Message("user", "sort | Zelda"),),
        (Message("user", "sort | <mask>"),),
        (Message("system", "Be brief."), Message("user", "sort | Adam")),
    ],
)
def test_what_is_no_question_is_refused(vocabulary: Vocabulary, chat: tuple[Message, ...]) -> None:
    with pytest.raises(ModelRequestError):
        vocabulary.encode_chat(chat)
