"""The oracle's predictions against counting by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.decoding.diffusion.lists import ORACLE
from weft.core.errors import ModelRequestError
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.oracle import adapter
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.adapter import OracleAdapter
from weft.decoding.diffusion.oracle.language import ListQuestion, read_question
from weft.decoding.diffusion.oracle.languages import LANGUAGES, answer_table, random_question, valid
from weft.decoding.diffusion.query import Query

SMALL = ("copy", "insert_random", "remove_random", "shuffle", "parity", "words_to_sentence")


def canvas(question: ListQuestion, length: int) -> Canvas:
    return Canvas(question.prompt, length, words.MASK)


def query(text: Canvas, *wanted: int, **more: Any) -> Query:
    """Slots of the answer."""
    slots = np.array([text.first + slot for slot in wanted], dtype=np.int64)
    reach = more.pop("reach", text.length)
    return Query(text, np.arange(reach), slots, reach, **more)


def law(logits: NDArray[np.float32]) -> dict[str, float]:
    """Of one row, by spelling."""
    p = np.exp(logits.astype(np.float64) - logits.max())
    p /= p.sum()
    return {words.TOKENS[token]: round(float(p[token]), 6) for token in np.flatnonzero(p)}


def told(prompt: str) -> ListQuestion:
    return read_question(words.ids_of(prompt))


def name(spelling: str) -> int:
    return words.ids_of(spelling)[0]


@given(
    operation=st.sampled_from(SMALL),
    n=st.integers(3, 4),
    seed=st.integers(0, 99),
    room=st.integers(0, 2),
    hidden=st.sets(st.integers(0, 8)),
)
def test_predictions_are_shares_of_the_answers_that_agree(
    operation: str, n: int, seed: int, room: int, hidden: set[int]
) -> None:
    random = np.random.default_rng(seed)
    question = random_question(operation, n, random)
    table = [[*row, *[words.EOS] * room] for row in answer_table(question).tolist()]
    truth = table[random.integers(len(table))]
    text = canvas(question, len(truth))
    shown = [slot for slot in range(len(truth)) if slot not in hidden]
    text.commit([text.first + slot for slot in shown], [truth[slot] for slot in shown])

    logits = ORACLE.forward([query(text, *range(len(truth)))])[0]

    for slot in range(len(truth)):
        others = [at for at in shown if at != slot]
        left = [row for row in table if all(row[at] == truth[at] for at in others)]
        counts: dict[str, int] = {}
        for row in left:
            token = words.TOKENS[row[slot]]
            counts[token] = counts.get(token, 0) + 1
        expected = {token: round(count / len(left), 6) for token, count in counts.items()}
        assert law(logits[slot]) == pytest.approx(expected, abs=2e-6)


def test_a_canvas_that_no_answer_agrees_with_says_nothing() -> None:
    text = canvas(told("copy <sep> Tom Adam Mary <sep>"), 3)
    text.commit([text.first], [name("Eva")])
    logits = ORACLE.forward([query(text, 0, 1)])[0]

    assert law(logits[0]) == {"Tom": 1.0}  # the wrong token itself is seen through
    assert law(logits[1]) == {"Adam": 1.0}


def test_terminators_follow_the_answer_and_a_short_canvas_sees_its_beginning() -> None:
    question = told("copy <sep> Tom Adam Mary <sep>")
    long, short = canvas(question, 5), canvas(question, 2)
    logits = ORACLE.forward([query(long, 2, 3, 4), query(short, 0, 1)])

    assert [law(row) for row in logits[0]] == [{"Mary": 1.0}, {"<eos>": 1.0}, {"<eos>": 1.0}]
    assert [law(row) for row in logits[1]] == [{"Tom": 1.0}, {"Adam": 1.0}]


def test_slots_behind_the_reach_and_of_later_blocks_are_not_seen() -> None:
    question = told("shuffle <sep> Adam Mary Tom <sep>")  # 6 slots of prompt
    text = canvas(question, 3)
    text.commit([text.first + 2], [name("Tom")])
    third, half = round(1 / 3, 6), 0.5

    seen = ORACLE.forward([query(text, 0)])[0]
    cut = ORACLE.forward([query(text, 0, reach=text.first + 2)])[0]
    blocks = OracleAdapter(block=2).forward([query(text, 0, 1)])[0]  # slots 6 7 | 8
    assert law(seen[0]) == {"Adam": half, "Mary": half}
    assert law(cut[0]) == {"Adam": third, "Mary": third, "Tom": third}
    assert law(blocks[0]) == law(blocks[1]) == law(cut[0])
    assert OracleAdapter(block=2).traits.block == 2


def test_ids_of_a_query_stand_for_the_canvas() -> None:
    text = canvas(told("shuffle <sep> Adam Mary Tom <sep>"), 3)
    ids = text.ids.copy()
    ids[text.first] = name("Tom")
    supposed = ORACLE.forward([query(text, 1, ids=ids, scratch=True)])[0]
    assert law(supposed[0]) == {"Adam": 0.5, "Mary": 0.5}

    ids[: text.first] = words.MASK  # guidance without a prompt
    blind = ORACLE.forward([query(text, 1, ids=ids, kind="unconditional")])[0][0]
    assert set(blind[np.isfinite(blind)]) == {0.0}
    assert not np.isfinite(blind[[words.MASK, words.PAD, words.SEP]]).any()


def test_shadows_see_all_but_themselves() -> None:
    text = canvas(told("copy <sep> Adam Mary <sep>"), 2)
    text.commit([text.first, text.first + 1], [name("Tom"), name("Mary")])
    logits = ORACLE.forward([query(text, shadows=np.array([text.first]))])[0]

    assert [law(row) for row in logits] == [{"Adam": 1.0}]


def test_noise_in_open_slots_is_not_read() -> None:
    text = canvas(told("shuffle <sep> Adam Mary <sep>"), 2)
    text.renoise([text.first, text.first + 1], [name("Adam"), name("Adam")])

    assert law(ORACLE.forward([query(text, 0)])[0][0]) == {"Adam": 0.5, "Mary": 0.5}


@pytest.mark.parametrize("length", [3, 4, 6])
def test_shuffles_too_long_to_list_follow_a_formula(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same as listing, for every content of every subset of slots."""
    question = told("shuffle <sep> Adam Mary Tom Eva <sep>")
    listed = adapter.distribution_of.__wrapped__(question, length)
    monkeypatch.setattr(adapter, "MOST_ANSWERS", 1)
    formula = adapter.distribution_of.__wrapped__(question, length)
    random = np.random.default_rng(0)
    tokens = [*question.items, words.EOS, name("Ben")]
    for _ in range(300):
        ids = random.choice(tokens, length)
        ids[4:] = words.EOS if random.random() < 0.8 else ids[4:]
        seen = random.random(length) < 0.4
        slots = np.flatnonzero(~seen)
        found, counted = formula.given(ids, seen, slots), listed.given(ids, seen, slots)
        assert [law(row) for row in found] == [law(row) for row in counted]


def test_a_shuffle_of_fifteen_is_written() -> None:
    question = random_question("shuffle", 15, np.random.default_rng(0))
    text = canvas(question, 16)
    while text.undecided.any():
        slot = text.decided_to
        logits = ORACLE.forward([query(text, slot - text.first)])[0][0]
        text.commit([slot], [int(logits.argmax())])

    assert valid(question, text.ids[text.first : -1].tolist())
    assert text.ids[-1] == words.EOS


def test_a_prompt_that_is_no_question_is_refused() -> None:
    with pytest.raises(ModelRequestError, match="no question"):
        ORACLE.forward([query(Canvas([1, 2], 2, words.MASK), 0)])


def test_rows_do_not_depend_on_their_batch() -> None:
    random = np.random.default_rng(0)
    asked_ = [random_question(operation, 3, random) for operation in LANGUAGES]
    all_ = [query(canvas(question, 3), 0, 1, 2) for question in asked_]
    together = ORACLE.forward(all_)

    for one, logits in zip(all_, together, strict=True):
        np.testing.assert_array_equal(ORACLE.forward([one])[0], logits)
    ORACLE.forget(0)
    np.testing.assert_array_equal(ORACLE.forward(all_[:1])[0], together[0])
