"""Drafts for a batch: from one's own text, from siblings, from a grammar; never an error."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.serving.vllm.drafting.batch_drafter import BatchDrafter
from weft.serving.vllm.drafting.requests import Constraint, RowFacts
from weft.serving.vllm.drafting.settings import ProposerSettings

LONGEST = 64


class Fixed:
    """A batch that says what it is told to."""

    def __init__(self, *facts: RowFacts, living: Container[str] | None = None) -> None:
        self.facts = facts
        self.alive: Container[str] = {each.request for each in facts} if living is None else living

    def rows(self) -> Sequence[RowFacts]:
        return self.facts

    def living(self) -> Container[str]:
        return self.alive


class Broken:
    """A batch that cannot say anything."""

    def rows(self) -> Sequence[RowFacts]:
        raise AttributeError("another vLLM")

    def living(self) -> Container[str]:
        raise AttributeError("another vLLM")


class Always:
    """A grammar that always forces the same."""

    def __init__(self, *tokens: int) -> None:
        self.tokens = tokens

    def take(self, tokens: Sequence[int]) -> None:
        self.taken = tokens

    def forced(self) -> Sequence[int]:
        return self.tokens


def step(
    drafts: BatchDrafter, *texts: list[int], new: int = 1, batch: Fixed | Broken | None = None
) -> list[list[int]]:
    ids = np.zeros((len(texts), LONGEST), np.int32)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = text
    counts = np.array([len(text) for text in texts], np.int32)
    return drafts.propose([text[-new:] if new else [] for text in texts], counts, ids, batch)


@pytest.fixture
def drafts() -> BatchDrafter:
    return BatchDrafter(ProposerSettings(), 4, LONGEST)


def test_a_row_is_drafted_from_its_own_text(drafts: BatchDrafter) -> None:
    assert step(drafts, [1, 2, 3, 4, 5, 1, 2], [6, 7, 8]) == [[3, 4, 5, 1], []]


def test_a_row_that_is_still_read_or_full_has_no_draft(drafts: BatchDrafter) -> None:
    assert step(drafts, [1, 2, 1, 2, 1, 2], new=0) == [[]]
    almost = [1, 2] * (LONGEST // 2 - 1)
    assert step(drafts, almost) == [[1]]
    assert step(drafts, [*almost, 1]) == [[]]


def test_siblings_learn_while_an_answer_is_written_and_others_when_it_ended(
    drafts: BatchDrafter,
) -> None:
    one, two = RowFacts("1", "plan", 1), RowFacts("2", "plan", 1)
    written = [9, *range(20, 70)]
    step(drafts, written, new=50, batch=Fixed(one))
    assert step(drafts, [8, 30, 31], batch=Fixed(two, living={"1", "2"})) == [[32, 33, 34, 35]]
    short = [9, 3, 4, 5, 6]
    step(drafts, short, new=4, batch=Fixed(RowFacts("3", "edit", 1)))
    step(drafts, [0], batch=Fixed(RowFacts("4")))
    assert step(drafts, [7, 3, 4], batch=Fixed(RowFacts("5", "edit", 1))) == [[5, 6]]


def test_what_ended_is_told_once_with_its_label() -> None:
    ended: list[tuple[str, list[int]]] = []
    drafts = BatchDrafter(
        ProposerSettings(), 4, LONGEST, ended=lambda *each: ended.append((each[0], [*each[1]]))
    )
    step(drafts, [1, 2, 3, 4], new=2, batch=Fixed(RowFacts("1", "plan", 2)))
    for _ in range(3):
        step(drafts, batch=Fixed())
    assert ended == [("plan", [3, 4])]


def test_forced_tokens_come_first_and_texts_after_them() -> None:
    constraint = Constraint("json", "{}")
    drafts = BatchDrafter(ProposerSettings(), 4, LONGEST, grammar=lambda _: Always(2, 3))
    facts = RowFacts("1", "", 5, constraint)
    assert step(drafts, [2, 3, 4, 5, 9, 1], batch=Fixed(facts)) == [[2, 3, 4, 5]]
    drafts = BatchDrafter(ProposerSettings(), 4, LONGEST, grammar=lambda _: Always(*range(9)))
    assert step(drafts, [9, 9], batch=Fixed(facts)) == [[0, 1, 2, 3]]
    drafts = BatchDrafter(ProposerSettings(), 4, LONGEST, grammar=lambda _: None)
    assert step(drafts, [5, 6], batch=Fixed(facts)) == [[]]


def test_a_batch_that_cannot_say_who_is_who_costs_nothing_else(
    drafts: BatchDrafter, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(20):
        assert step(drafts, [1, 2, 3, 1, 2], batch=Broken()) == [[3, 1, 2, 3]]
    assert drafts.failures == 40
    assert len(caplog.records) <= 7  # ever more rarely


def test_a_batch_of_another_size_is_not_believed(drafts: BatchDrafter) -> None:
    assert step(drafts, [1, 2, 3, 1, 2], batch=Fixed()) == [[3, 1, 2, 3]]


def test_a_row_that_raises_has_no_draft_and_the_others_theirs() -> None:
    def grammar(constraint: Constraint) -> Always:
        raise RuntimeError("a drafter that breaks")

    drafts = BatchDrafter(ProposerSettings(), 4, LONGEST, grammar=grammar)
    batch = Fixed(RowFacts("1", "", 0, Constraint("json", "{}")), RowFacts("2"))
    again = [1, 2, 3, 1, 2]
    for times in (1, 2):
        assert step(drafts, again, again, batch=batch) == [[], [3, 1, 2, 3]]
        assert drafts.failures == times


def test_texts_from_outside_are_taken_in_a_few_at_a_time(drafts: BatchDrafter) -> None:
    waiting = iter([("plan", [1, 2, number]) for number in range(10, 20)])
    drafts.add_texts(waiting)
    assert len(list(waiting)) == 6
    assert step(drafts, [1, 2], batch=Fixed(RowFacts("r", "plan"))) == [[13]]

    hostile: Any = [("plan", None)]
    drafts.add_texts(hostile)
    assert drafts.failures == 1


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.permutations(range(3)),
            st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), min_size=3, max_size=3),
        ),
        max_size=8,
    ),
    st.booleans(),
)
def test_in_any_order_a_row_is_drafted_from_its_own_text(
    steps: list[tuple[list[int], list[list[int]]]], named: bool
) -> None:
    """Of three that have no token in common; siblings are told nothing so short."""
    together = BatchDrafter(ProposerSettings(memory_mib=1), 4, LONGEST)
    texts: list[list[int]] = [[3, 4, 3], [13, 14, 13], [23, 24, 23]]
    for order, news in steps:
        for request in range(3):
            more = [10 * request + each for each in news[request]]
            texts[request] = [*texts[request], *more][: LONGEST - 8]
        batch = Fixed(*(RowFacts(str(r), "", 3) for r in order)) if named else None
        found = step(together, *(texts[r] for r in order), batch=batch)
        assert [len(draft) <= 4 for draft in found] == [True] * 3
        assert together.failures == 0
        for request, draft in zip(order, found, strict=True):
            whole = [*texts[request], *draft]
            for at in range(len(texts[request]), len(whole)):
                run = whole[at - 1 : at + 1]
                assert any(whole[i : i + 2] == run for i in range(at - 1))
