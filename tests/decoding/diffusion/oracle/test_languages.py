"""The tables of answers against the rules, written twice and independently."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import CapabilityError, ModelRequestError
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.language import ListQuestion, read_question
from weft.decoding.diffusion.oracle.languages import (
    DETERMINISTIC,
    FREE,
    LANGUAGES,
    MOST_ANSWERS,
    answer_table,
    language_of,
    random_answer,
    random_question,
    valid,
)

RANDOM = np.random.default_rng


def questions(largest: int) -> list[ListQuestion]:
    random = RANDOM(3)
    return [
        random_question(name, n, random)
        for name, found in LANGUAGES.items()
        for n in range(found.shortest, min(found.longest, largest) + 1)
        for _ in range(2)
    ]


def test_the_vocabulary_is_spelled_without_doubles_and_names_sort_as_ids() -> None:
    assert len(set(words.TOKENS)) == words.SIZE
    assert list(words.NAMES) == sorted(words.NAMES)
    assert tuple(LANGUAGES) == words.OPERATIONS
    assert words.ids_of(words.spelled(range(words.SIZE))) == tuple(range(words.SIZE))
    assert words.TOKENS[words.index_id(3)] == "3"
    assert words.TOKENS[words.operation_id("sort")] == "sort"


@pytest.mark.parametrize("question", questions(4), ids=str)
def test_the_table_holds_exactly_what_the_rule_allows(question: ListQuestion) -> None:
    table = answer_table(question)
    found = {tuple(row) for row in table.tolist()}

    assert len(found) == len(table) == language_of(question).count(question)
    alphabet = language_of(question).alphabet(question)
    length = language_of(question).length(question)
    if len(alphabet) ** length < 100_000:
        right = {way for way in product(alphabet, repeat=length) if valid(question, way)}
        assert found == right
    else:
        assert all(valid(question, row) for row in found)
    foreign = list(table[0])
    foreign[-1] = words.EOS
    assert not valid(question, foreign)
    assert not valid(question, [*table[0].tolist(), int(table[0][0])])
    assert not valid(question, table[0][:-1].tolist())


@pytest.mark.parametrize("question", questions(8), ids=str)
def test_prompts_are_read_as_they_were_asked(question: ListQuestion) -> None:
    assert read_question(question.prompt) == question


def test_answers_are_what_people_expect() -> None:
    def told(prompt: str) -> set[str]:
        return {
            words.spelled(row) for row in answer_table(read_question(words.ids_of(prompt))).tolist()
        }

    assert told("sort <sep> Tom Adam Mary <sep>") == {"Adam Mary Tom"}
    assert told("reverse <sep> Tom Adam Mary <sep>") == {"Mary Adam Tom"}
    assert told("replace_index 1 Eva <sep> Tom Adam Mary <sep>") == {"Tom Eva Mary"}
    assert told("insert_index 3 Eva <sep> Tom Adam Mary <sep>") == {"Tom Adam Mary Eva"}
    assert told("remove_index 0 <sep> Tom Adam Mary <sep>") == {"Adam Mary"}
    assert told("remove_random <sep> Tom Adam Mary <sep>") == {"Adam Mary", "Tom Mary", "Tom Adam"}
    assert told("pair_match <sep> Tom Adam <sep>") == {"Tom Tom", "Adam Adam"}
    assert told("latin_row <sep> Tom Adam Mary <sep>") == {"Adam Mary Tom", "Mary Tom Adam"}
    assert told("parity <sep> Tom Adam <sep>") == {"0 0 even", "0 1 odd", "1 0 odd", "1 1 even"}
    assert told("brackets <sep> Tom Adam <sep>") == {"[ ] [ ]", "[ [ ] ]"}
    assert told("words_to_sentence <sep> dog sees old girl now <sep>") == {
        "old dog sees girl now",
        "dog sees old girl now",
        "old girl sees dog now",
        "girl sees old dog now",
    }


def test_answers_are_drawn_evenly() -> None:
    question = random_question("replace_random", 4, RANDOM(0))
    random = RANDOM(1)
    found = [random_answer(question, random) for _ in range(400)]

    counts = [found.count(tuple(row)) for row in answer_table(question).tolist()]
    assert sum(counts) == 400
    assert min(counts) > 60


def test_every_language_is_one_or_the_other_kind() -> None:
    assert set(DETERMINISTIC) | set(FREE) == set(LANGUAGES)
    for name in DETERMINISTIC:
        assert len(answer_table(random_question(name, 5, RANDOM(0)))) == 1
    for name in FREE:
        assert len(answer_table(random_question(name, 4, RANDOM(0)))) > 1


def test_too_many_answers_are_refused_before_they_are_listed() -> None:
    assert len(answer_table(random_question("shuffle", 8, RANDOM(0)))) == 40_320 <= MOST_ANSWERS
    with pytest.raises(CapabilityError, match=r"1,307,674,368,000 valid answers .*fewer items"):
        answer_table(random_question("shuffle", 15, RANDOM(0)))


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ("", "no question"),
        ("copy Tom <sep>", "no question"),
        ("<sep> Tom <sep>", "no question"),
        ("copy <sep> Tom <sep> Adam", "no question"),
        ("copy <sep> Tom Adam <sep> <sep>", "no question"),
        ("copy <sep> Tom <sep>", "1 items"),
        ("copy <sep> Tom Tom <sep>", "all different"),
        ("copy <sep> Tom <mask> <sep>", "all different"),
        ("copy 1 <sep> Tom Adam <sep>", "does not take 1"),
        ("remove_index <sep> Tom Adam <sep>", "does not take nothing"),
        ("remove_index 2 <sep> Tom Adam <sep>", "does not take 2"),
        ("remove_index Eva <sep> Tom Adam <sep>", "does not take Eva"),
        ("insert_index 3 Eva <sep> Tom Adam <sep>", "does not take 3 Eva"),
        ("replace_random Tom <sep> Tom Adam <sep>", "does not take Tom"),
        ("replace_random 1 <sep> Tom Adam <sep>", "does not take 1"),
        ("words_to_sentence <sep> dog girl boat <sep>", "no valid answer"),
        ("words_to_sentence <sep> dog sees Tom <sep>", "no valid answer"),
        ("latin_square <sep> Tom Adam Eva Mary Paul <sep>", "5 items"),
    ],
)
def test_what_is_no_question_is_refused_with_a_remedy(prompt: str, why: str) -> None:
    with pytest.raises(ModelRequestError, match=why) as refused:
        answer_table(read_question(words.ids_of(prompt)))
    assert refused.value.hint


def test_an_operation_that_is_none_is_refused() -> None:
    with pytest.raises(ModelRequestError, match="no list operation 'fly'"):
        language_of(ListQuestion("fly", (words.FIRST_NAME, words.FIRST_NAME + 1)))
    with pytest.raises(ValueError, match="takes 2 to 15"):
        random_question("copy", 16, RANDOM(0))


@given(st.lists(st.integers(-2, words.SIZE + 2), max_size=12))
def test_any_prompt_is_read_or_refused(prompt: list[int]) -> None:
    try:
        question = read_question(prompt)
        found = answer_table(question)
    except (ModelRequestError, CapabilityError):
        return
    assert question.prompt == tuple(prompt)
    assert valid(question, found[0].tolist())
