"""Rows find their requests again, however a batch is reordered between steps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from weft.serving.vllm.drafting.requests import RequestHistory, RequestRows, RowFacts
from weft.serving.vllm.drafting.suffix_drafter import SuffixMatchDrafter

STEPS = st.lists(
    st.tuples(
        st.permutations(range(4)),
        st.sets(st.integers(0, 3), min_size=1),
        st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=3), min_size=4, max_size=4),
    ),
    max_size=12,
)
PROMPTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), min_size=4, max_size=4)


def ids(tokens: list[int]) -> NDArray[np.int32]:
    return np.array(tokens, np.int32)


def rows() -> RequestRows:
    return RequestRows(
        lambda facts: RequestHistory(
            SuffixMatchDrafter(8, 0.1), "" if facts is None else facts.label
        )
    )


@given(PROMPTS, STEPS, st.booleans())
def test_each_row_has_the_line_of_its_request_whatever_the_order(
    prompts: list[list[int]],
    steps: list[tuple[list[int], set[int], list[list[int]]]],
    named: bool,
) -> None:
    """Requests leave the batch for some steps and come back, as when they are preempted."""
    table = rows()
    texts = [list(prompt) for prompt in prompts]
    mine: dict[int, RequestHistory] = {}
    for order, present, news in steps:
        taken: set[RequestHistory] = set()
        for request in (each for each in order if each in present):
            texts[request] += news[request]
            facts = RowFacts(f"r{request}", "a", len(prompts[request])) if named else None
            line = table.history_of(ids(texts[request]), len(news[request]), facts, taken)
            assert line not in taken
            taken.add(line)
            assert line.tokens == texts[request]
            if named:
                assert mine.setdefault(request, line) is line
                assert line.prompt_tokens == len(prompts[request])


@given(st.permutations(range(5)), st.permutations(range(5)))
def test_without_names_lines_whose_tokens_differ_are_never_mixed(
    first: list[int], second: list[int]
) -> None:
    table = rows()
    lines: dict[int, RequestHistory] = {}
    for order, length in ((first, 1), (second, 2)):
        taken: set[RequestHistory] = set()
        for request in order:
            line = table.history_of(ids([request, 7, 8] + [request] * length), 1, None, taken)
            taken.add(line)
            assert lines.setdefault(request, line) is line


def test_two_requests_of_the_same_tokens_have_a_line_each() -> None:
    table = rows()
    taken: set[RequestHistory] = set()
    for _ in range(2):
        taken.add(table.history_of(ids([1, 2, 3]), 1, None, taken))
    assert len(taken) == len(table) == 2


def test_a_name_that_is_given_again_begins_anew() -> None:
    table = rows()
    facts = RowFacts("r", prompt_tokens=2)
    first = table.history_of(ids([1, 2, 3]), 1, facts, ())
    second = table.history_of(ids([5, 6, 7, 8]), 2, facts, ())
    assert second is not first
    assert second.answer == [7, 8]
    assert len(table) == 1


def test_a_line_ends_with_its_request_and_without_names_after_some_time() -> None:
    table = rows()
    line = table.history_of(ids([1, 2, 3]), 1, RowFacts("r"), ())
    other = table.history_of(ids([1, 2, 3]), 1, None, ())
    assert table.ended({"r"}) == []
    assert table.ended(()) == [line]
    ended = [gone for _ in range(100) for gone in table.ended(())]
    assert ended == [other]
    assert len(table) == 0


def test_nobody_saying_who_lives_does_not_keep_lines_for_ever() -> None:
    table = rows()
    line = table.history_of(ids([1, 2, 3]), 1, RowFacts("r"), ())
    assert [gone for _ in range(100) for gone in table.ended(None)] == [line]
