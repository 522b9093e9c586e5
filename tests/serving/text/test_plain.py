from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import ModelRequestError
from weft.serving.text import PlainText, Tokenized

FIRST = 0x110000
# They overlap and hold one another, and some are pieces of the pieces of others.
MARKS = ["<a>", "<a", "a>", "<<a>>", "a><a", ">>", "<a> ", "x<"]


def tokenized(text: str) -> Tokenized:
    """Characters, and marks: the first of the longest at each place, as tokenizers take them."""
    ids: list[int] = []
    at = 0
    while at < len(text):
        mark = max((one for one in MARKS if text.startswith(one, at)), key=len, default="")
        ids.append(FIRST + MARKS.index(mark) if mark else ord(text[at]))
        at += len(mark) or 1
    return Tokenized(tuple(ids), {one: MARKS[one - FIRST] for one in ids if one >= FIRST})


hostile = st.lists(st.sampled_from([*MARKS, "<", ">", "a", " ", "é"]) | st.text(max_size=3))


@given(st.lists(hostile.map("".join), min_size=1, max_size=4))
def test_no_text_spells_a_special_token_and_none_loses_a_character(texts: list[str]) -> None:
    plain = PlainText()
    for text in texts:
        ids = plain.encode(text, tokenized)
        assert all(token < FIRST for token in ids)
        assert "".join(map(chr, ids)) == text


@given(hostile.map("".join))
def test_tokenizing_that_takes_time_gives_the_same(text: str) -> None:
    async def later(asked: str) -> Tokenized:
        await asyncio.sleep(0)
        return tokenized(asked)

    assert asyncio.run(PlainText().encode_by(text, later)) == PlainText().encode(text, tokenized)


def test_what_is_between_special_tokens_keeps_its_ids_and_is_asked_for_once() -> None:
    asked: list[str] = []

    def words(text: str) -> Tokenized:
        asked.append(text)
        known = {"one<s>two<s>three": (1, 9, 2, 9, 3), "<": (4,), "s>": (5, 6)}
        return Tokenized(known[text], {9: "<s>"} if 9 in known[text] else {})

    plain = PlainText()
    for _ in range(2):
        assert plain.encode("one<s>two<s>three", words) == (1, 4, 5, 6, 2, 4, 5, 6, 3)
    assert asked == ["one<s>two<s>three", "<", "s>", "one<s>two<s>three"]


def test_a_character_that_only_a_special_token_spells_is_refused() -> None:
    with pytest.raises(ModelRequestError, match="no words for '§'"):
        PlainText().encode("a§b", lambda _: Tokenized((1, 9, 2), {9: "§"}))


def test_a_model_without_a_word_for_its_own_unknown_refuses_and_does_not_go_round() -> None:
    def unknown(text: str) -> Tokenized:
        return Tokenized((0,) * len(text), {0: "<unk>"})

    with pytest.raises(ModelRequestError, match="no words for '<unk>'"):
        PlainText().encode("ä", unknown)


def test_a_character_that_no_token_spells_is_the_unknown_token() -> None:
    def words(text: str) -> Tokenized:
        known = {"a": 1, "<": 2, ">": 3}
        ids = [known.get(char, 0) for char in text.replace("<unk>", "ü")]
        return Tokenized(tuple(ids), {0: "<unk>"}, unknown=0)

    plain = PlainText()
    assert plain.encode("aüa", words) == (1, 0, 1)
    assert plain.encode("a<unk>", words) == (1, 0)


def test_an_unknown_token_that_can_be_spelt_is_broken_up() -> None:
    def letters(text: str) -> Tokenized:
        ids = (0,) if text == "<unk>" else tuple(map(ord, text))
        return Tokenized(ids, {0: "<unk>"}, unknown=0)

    assert PlainText().encode("<unk>", letters) == tuple(map(ord, "<unk>"))
