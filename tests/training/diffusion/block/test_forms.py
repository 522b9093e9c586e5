"""Forms: laid out as skeletons are, and open slots ask for what the document says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.decoding.diffusion.structure.compiler import StructureCompiler
from weft.decoding.diffusion.structure.languages.token_automaton import TokenVocabulary
from weft.decoding.diffusion.structure.skeleton import StructureOptions
from weft.serving.local.vocabulary import Vocabulary
from weft.training.diffusion.block import documents
from weft.training.diffusion.block.forms import (
    DocumentForm,
    FormBlank,
    FormChoice,
    FormLiteral,
    copy_form,
)
from weft.training.diffusion.block.layout import LayoutBuilder
from weft.training.prompts import Tokenizer

END, MASK = 1, 0
SHOWN = -1


def letters(text: str) -> list[int]:
    """A token a character."""
    return list(text.encode())


def made(seed: int) -> documents.GeneratedDocument:
    chance = np.random.default_rng(seed)
    return documents.random_form(chance) if seed % 4 == 0 else documents.random_document(chance)


def form_of(seed: int) -> DocumentForm:
    one = made(seed)
    return DocumentForm.of(one.fields, one.schemas, letters)


@given(st.integers(0, 10**6))
def test_decided_it_is_the_document(seed: int) -> None:
    form = form_of(seed)

    assert bytes(form.tokens).decode() == made(seed).answer
    opened = form.opened(0, 10**6, np.random.default_rng(0), 0.0)
    assert tuple(opened.ids) == form.tokens
    assert set(opened.goals) == {SHOWN}


@given(st.integers(0, 10**6), st.floats(0, 1), st.integers(0, 99))
def test_open_slots_ask_for_what_the_document_says(seed: int, level: float, dice: int) -> None:
    form = form_of(seed)
    opened = form.opened(0, 10**6, np.random.default_rng(dice), level)
    slots = list(zip(opened.ids, opened.goals, strict=True))

    assert all((shown == SHOWN) != (goal == SHOWN) for shown, goal in slots)
    at = number = 0
    while number < len(form.pieces):
        piece = form.pieces[number]
        number += 1
        if isinstance(piece, FormChoice) and at < len(slots) and slots[at] == (SHOWN, piece.goal):
            at, number = at + 1, piece.until
            continue
        here = slots[at : at + len(piece.tokens)]
        at += len(piece.tokens)
        for (shown, goal), token in zip(here, piece.tokens, strict=True):
            assert token in (shown, goal)
            assert shown == token or isinstance(piece, FormBlank)
        if isinstance(piece, FormBlank):
            first = at
            while slots[at] == (SHOWN, piece.after):
                at += 1
            assert at - first + len(piece.tokens) <= max(
                len(piece.tokens), StructureOptions().open_tokens
            )
    assert at == len(slots)


@given(st.integers(0, 10**6), st.integers(0, 60), st.integers(1, 40), st.floats(0, 1))
def test_a_part_begins_behind_what_is_decided(
    seed: int, begin: int, width: int, level: float
) -> None:
    form = form_of(seed)
    whole = form.opened(begin, 10**6, np.random.default_rng(0), level)
    part = form.opened(begin, width, np.random.default_rng(0), level)

    assert part.ids == whole.ids[:width]
    assert part.goals == whole.goals[:width]
    decided = form.opened(begin, width, np.random.default_rng(0), 0.0)
    assert tuple(decided.ids) == form.tokens[begin : begin + width]


@pytest.fixture(scope="module")
def vocabulary(chat_model: Path) -> Vocabulary:
    return Vocabulary.load(chat_model, len(Tokenizer(chat_model)._tokenizer), frozenset())


def test_all_open_it_is_what_a_skeleton_lays_out(chat_model: Path, vocabulary: Vocabulary) -> None:
    """But for how many slots a value has, which depends on more than its schema."""
    structures = StructureCompiler(TokenVocabulary(vocabulary, frozenset(), vocabulary.end_ids))
    spell = Tokenizer(chat_model).plain
    for seed in range(60):
        one = made(seed)
        opened = DocumentForm.of(one.fields, one.schemas, spell).opened(
            0, 10**6, np.random.default_rng(seed), 1.0
        )
        skeleton = structures.start(room=1000, schema=one.schema)
        assert list(_once(opened.ids)) == list(_once(skeleton.tokens)), one.answer


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([1, 4, 8, 32]))
def test_each_block_is_at_a_moment_of_its_own(seed: int, answer: int, block: int) -> None:
    form = form_of(seed)
    laying = LayoutBuilder(block, MASK, END)
    tokens = laying.slots(np.array([*range(2, answer + 2), *form.tokens, END]))
    copy = copy_form(form, tokens, answer, laying, np.random.default_rng(seed))

    first = laying.first(answer)
    prompt = answer - first
    assert copy.slots[:prompt].tolist() == list(range(first, answer))
    assert (copy.ids[:prompt] == tokens[first:answer]).all()
    assert not copy.open[:prompt].any()
    assert (copy.open == (copy.goals != SHOWN)).all()
    assert (copy.ids[copy.open] == MASK).all()
    for start in range(first, answer + len(form.tokens), block):
        [rows] = np.nonzero(copy.slots // block == start // block)
        assert copy.slots[rows].tolist() == list(range(start, start + len(rows)))
        begin = max(start, answer)
        behind = rows[copy.slots[rows] >= begin]
        # a value that is full may have ended: there is nothing left of it then
        ended = {piece.after for piece in form.pieces if isinstance(piece, FormBlank)}
        if len(behind):
            shown = copy.goals if copy.open[behind[0]] else copy.ids
            assert shown[behind[0]] in {*form.tokens[begin - answer : begin - answer + 1], *ended}


def _once(tokens: list[int]) -> Iterator[int]:
    """Runs of open slots as one."""
    before = None
    for token in tokens:
        if token != SHOWN or before != SHOWN:
            yield token
        before = token


def test_pieces_of_a_list_fork() -> None:
    form = DocumentForm.of({"l": ["a", "b"]}, {"l": {"type": "array"}}, letters)
    opening, first, item, quote, comma, space, other, end, over, closing = form.pieces

    assert opening == FormLiteral(tuple(letters('{"l": [')))
    assert first == FormChoice((34,), 34, 9)
    assert item == FormBlank(tuple(letters("a")), 34)
    assert quote == end == FormLiteral((34,))
    assert comma == FormChoice((44,), 44, 9)
    assert space == FormLiteral(tuple(letters(' "')))
    assert other == FormBlank(tuple(letters("b")), 34)
    assert over == FormChoice((), ord("]"), 9)
    assert closing == FormLiteral(tuple(letters("]}")))
