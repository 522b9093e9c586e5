from __future__ import annotations

import pytest

from weft.decoding.worker_steps import WorkerSteps, ends_step


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("So it is four.\n\n", True),
        ("Is it four?\n \n", True),
        ("It is **four.**\n\n", True),
        ('He said "no."\n\n\n', True),
        ("これは四です。\n\n", True),
        ("So it is four.\n", False),
        ("So it is four\n\n", False),
        ("the list:\n\n", False),
        ("\n\n", False),
        ("four.\n\nThen", False),
    ],
)
def test_a_step_ends_with_a_blank_line_after_a_sentence(text: str, ends: bool) -> None:
    assert ends_step(text.encode()) is ends
    assert ends_step(text.encode()[-20:]) is ends  # perhaps from inside a character on


WORDS = {1: b"word ", 2: b"end.", 3: b"\n", 4: b"\n\n"}


def steps(*, shared: bool = True, nudge: bool = False) -> WorkerSteps:
    return WorkerSteps(
        WORDS.__getitem__,
        lambda number: [100 + number],
        [99] if nudge else [],
        4,
        shared=shared,
    )


def test_the_next_step_begins_after_the_last_token_of_this_one() -> None:
    watch = steps()
    assert watch.begin() == [101]
    assert [watch.follow(token) for token in (1, 2, 4)] == [[], [], [102]]
    assert watch.ended == [4]
    assert [watch.follow(token) for token in (4, 2, 3, 3)] == [[], [], [], [103]]
    assert watch.ended == [4, 9]


def test_an_opening_does_not_end_the_step_before_it() -> None:
    watch = steps()
    watch.begin()
    for token in (2, 4):
        watch.follow(token)
    assert watch.follow(4) == []  # the sentence was the step before


def test_nudges_come_with_the_step_after_so_many_tokens() -> None:
    watch = steps(nudge=True)
    assert watch.begin() == [101]
    assert [watch.follow(token) for token in (2, 4)][-1] == [102]
    assert [watch.follow(token) for token in (2, 4)][-1] == [103, 99]
    assert [watch.follow(token) for token in (2, 4)][-1] == [104]


def test_where_steps_are_not_shared_there_is_one() -> None:
    watch = steps(shared=False)
    assert watch.begin() == [101]
    assert [watch.follow(token) for token in (2, 4, 2, 4)] == [[]] * 4
    assert watch.ended == []
