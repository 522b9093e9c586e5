from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decoding.diffusion.structure.small_vocabularies import END, lexicon
from weft.decoding.diffusion.structure.languages.automaton import ByteAutomaton
from weft.decoding.diffusion.structure.languages.errors import NotASkeleton
from weft.decoding.diffusion.structure.languages.pattern import compile_pattern, parse_regex
from weft.decoding.diffusion.structure.languages.token_automaton import TokenAutomaton
from weft.decoding.diffusion.structure.slots import OPEN, ValueSlots

WORDS = ("a", "b", "ab", "ba", "abc", "c", "€", ".")
SMALL = lexicon(["ab", "ba", "abc", "€"])
IDS = {SMALL.written(token).decode("utf-8", "replace"): token for token in range(SMALL.size)}
BYTES = tuple(byte + 1 for byte in "€".encode())  # which spell it, too
TOKENS = (*(IDS[word] for word in WORDS), *BYTES)
EXPRESSIONS = (
    "^(a|ab|abc)$",
    "^a*b?$",
    "^(ab|ba){2}$",
    "^[ab]{1,3}c?$",
    "^a(bc)*$",
    "^(€|a)+b$",
    "^(a|b)*abc?$",
)


def language(expression: str, least: int = 0, most: int | None = None) -> ByteAutomaton:
    return compile_pattern(parse_regex(expression)).counting(least, most)


def words(made: ByteAutomaton, longest: int) -> set[tuple[int, ...]]:
    """All token sequences of up to `longest` tokens that spell a word."""
    return {
        tokens
        for count in range(longest + 1)
        for tokens in product(TOKENS, repeat=count)
        if made.reads(b"".join(map(SMALL.written, tokens)))
    }


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(EXPRESSIONS),
    st.integers(0, 2),
    st.sampled_from([None, 3, 5]),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_a_token_is_allowed_exactly_where_some_word_has_it(
    expression: str, least: int, most: int | None, size: int, chance: object
) -> None:
    import random

    assert isinstance(chance, random.Random)
    made = language(expression, least, most)
    possible = words(made, size)
    try:
        lifted = TokenAutomaton(made, SMALL, size)
    except NotASkeleton:
        assert not possible
        return
    assert lifted.least == min(map(len, possible))
    value = ValueSlots(lifted, size, size)
    import numpy as np

    value.follow(np.array([IDS["."]]), SMALL)
    while not value.full:
        left = [slot for slot, token in enumerate(value.tokens) if token == OPEN]
        for slot in left:
            classes, ends = value.allowed(slot)
            here = {token for token in TOKENS if classes[lifted.class_of[token]]}
            assert here == {word[slot] for word in possible if len(word) > slot}
            assert ends == any(len(word) == slot for word in possible)
        slot = chance.choice(left)
        classes, ends = value.allowed(slot)
        options = [token for token in TOKENS if classes[lifted.class_of[token]]]
        if ends:
            options.append(IDS["."])
        if not options:
            assert all(len(word) < slot for word in possible)
            continue
        token = chance.choice(options)
        assert value.take(slot, token)
        if token == IDS["."]:
            possible = {word for word in possible if len(word) <= slot}
        else:
            possible = {word for word in possible if len(word) > slot and word[slot] == token}
        assert possible
    assert tuple(value.tokens) in possible


def test_an_end_may_come_before_an_end() -> None:
    """A model may say of every slot behind a value that it is over there, the last one first."""
    import numpy as np

    made = lexicon([])
    value = ValueSlots(TokenAutomaton(language("^[a-z]*$"), made, 8), 6, 8)
    value.follow(np.array([IDS["."]]), made)
    assert value.end is not None
    assert value.take(5, value.end)
    assert value.take(2, value.end)
    assert value.size == 2
    assert not value.may_go_on
    assert value.take(0, made.spell("b")[0])
    assert value.take(1, value.end)
    assert value.full


def test_what_would_leave_no_word_is_not_taken() -> None:
    value = ValueSlots(TokenAutomaton(language("^(ab|ba){2}$"), SMALL, 8), 4, 4)
    assert value.take(0, IDS["a"])
    assert not value.take(1, IDS["a"])
    assert value.take(3, IDS["b"])
    assert value.forced() is not None


def test_what_can_only_be_one_thing_is_forced() -> None:
    value = ValueSlots(TokenAutomaton(language("^abcab$"), lexicon([]), 8), 5, 5)
    for _ in range(5):
        forced = value.forced()
        assert forced is not None
        assert value.take(*forced)
    assert value.forced() is None


def test_the_probability_of_an_end_is_that_of_all_that_says_so() -> None:
    import numpy as np

    words = lexicon(['",', '"}'])
    value = ValueSlots(TokenAutomaton(language("^[a-z]*$"), words, 4), 4, 4)
    comma = words.spell('",')[0]
    value.follow(np.array([comma]), words)
    logits = np.zeros(words.size, dtype=np.float32)
    out = value.restrict(1, logits)
    said = [words.spell(text)[0] for text in ('"', '",', '"}')] + [END]
    assert out[comma] == pytest.approx(np.log(len(said)))
    assert np.isfinite(out).sum() == 26 + 1
    assert not np.isfinite(out[[token for token in said if token != comma]]).any()


def test_a_value_without_an_end_token_ends_where_nothing_else_is_possible() -> None:
    value = ValueSlots(TokenAutomaton(language("^(a|abcab)$"), lexicon([]), 8), 5, 5)
    assert value.take(1, lexicon([]).spell("b")[0])
    other = ValueSlots(TokenAutomaton(language("^a$"), lexicon([]), 8), 3, 3)
    assert other.forced() == (0, lexicon([]).spell("a")[0])
    assert other.take(*(other.forced() or (0, 0)))
    assert other.forced() == (1, OPEN)
