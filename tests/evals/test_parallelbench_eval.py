"""ParallelBench's tasks: seeded, solvable by their examples, scored by the published rules."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.parallelbench import scores
from evals.parallelbench.runner import PUBLISHED_COUNT, Run, table
from evals.parallelbench.tasks import TASKS, shown
from weft.core.ports import ModelRequest
from weft.testing import FakeModel

ASKED = [task for task in TASKS.values() if not task.missing]
LINES = [task for task in ASKED if task.name.startswith("waiting_line/")]
ROOM = ["Ada", "Boris", "Carla"]


def test_there_are_the_seventeen_tasks_of_the_paper() -> None:
    """Names and counts of ParallelBench (arXiv 2510.04767), section 4."""
    groups = {name.partition("/")[0] for name in TASKS}
    assert groups == {"waiting_line", "paraphrase_summarize", "words_to_sentence", "puzzle"}
    assert (len(TASKS), len(LINES), len(ASKED), PUBLISHED_COUNT) == (17, 10, 15, 100)
    assert [task.name for task in TASKS.values() if task.missing] == [
        "paraphrase_summarize/paraphrase",
        "paraphrase_summarize/summarize",
    ]


@pytest.mark.parametrize("task", ASKED, ids=lambda task: task.name)
def test_an_example_is_right_and_a_seed_decides(task) -> None:  # type: ignore[no-untyped-def]
    asked = task.questions(PUBLISHED_COUNT, 42)
    assert [one.text for one in asked] == [one.text for one in task.questions(100, 42)]
    assert [one.text for one in asked] != [one.text for one in task.questions(100, 43)]
    for one in asked:
        assert one.right(one.example)
        assert not one.right("")
        assert not one.right("[")
    if task in LINES:
        sizes = [one.text.rsplit("this line: ", 1)[1].split(".")[0].count(",") for one in asked]
        assert {size: sizes.count(size) for size in sizes} == {2: 25, 3: 25, 4: 25, 5: 25}


@pytest.mark.parametrize("task", LINES, ids=lambda task: task.name)
def test_the_right_answers_are_those_that_the_words_say(task) -> None:  # type: ignore[no-untyped-def]
    """Of all lists of the people of a question of three, as many are right as there are ways."""
    ways = {"shuffle": 5, "insert_random": 4, "remove_random": 3, "replace_random": 3}
    one = task.questions(4, 7)[0]
    line = one.text.rsplit("this line: ", 1)[1].split(".")[0]
    people = scores.listed(line)
    order = one.text.rsplit(". ", 2)[1]
    every = [*people, *(word for word in order.split() if word.istitle() and word not in people)]
    every = list(dict.fromkeys(word.strip(",") for word in every))
    tried = [
        shown(list(some))
        for size in range(len(people) - 1, len(people) + 2)
        for some in itertools.product(every, repeat=size)
    ]
    right = [text for text in tried if one.right(text)]
    assert len(right) == ways.get(task.name.partition("/")[2], 1)
    assert one.example in right
    assert one.free == (len(right) > 1)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ('["Ada", "Boris"]', ["Ada", "Boris"]),
        ("So: [Ada, Boris] it is.", ["Ada", "Boris"]),
        ("Ada, Boris", ["Ada", "Boris"]),
        ('[1, 2] then ["Ada", ]', ["Ada"]),
        ("", []),
    ],
)
def test_lists_are_read_leniently(text: str, items: list[str]) -> None:
    assert scores.listed(text) == items


def test_squares_and_grids() -> None:
    square = "A, B, C, D\nC, D, A, B\nB, A, D, C\nD, C, B, A"
    assert scores.is_latin_square(f"Here:\n{square}\nDone.", "ABCD")
    assert not scores.is_latin_square(square.replace("D, C, B, A", "D, C, A, B"), "ABCD")
    assert not scores.is_latin_square("A, B, C, D\n" * 4, "ABCD")
    grid = "1234\n3412\n2143\n4321"
    assert scores.is_sudoku(grid, ["1___", "____", "____", "___1"])
    assert scores.is_sudoku("1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 1", ["____"] * 4)
    assert not scores.is_sudoku(grid, ["2___", "____", "____", "____"])
    assert not scores.is_sudoku("1234\n2341\n3412\n4123", ["____"] * 4), "its quarters repeat"


@given(st.text(max_size=60))
def test_any_text_is_scored(text: str) -> None:
    puzzle = ["____"] * 4
    found = [
        scores.is_list(text, ROOM),
        scores.is_shuffled(text, ROOM),
        scores.has_inserted(text, ROOM, "Zora"),
        scores.has_removed(text, ROOM),
        scores.has_replaced(text, ROOM, "Zora"),
        scores.is_latin_square(text, "ABCD"),
        scores.is_sudoku(text, puzzle),
    ]
    assert not any(found)


def test_a_run_counts_what_is_right() -> None:
    copy, shuffle = TASKS["waiting_line/copy"], TASKS["waiting_line/shuffle"]

    def writes_the_line(request: ModelRequest) -> str:
        line = str(request.messages[-1].content).rsplit("this line: ", 1)[1]
        return line[: line.index("]") + 1]

    model = FakeModel(writes_the_line)
    tasks = [copy, shuffle, TASKS["paraphrase_summarize/summarize"]]
    rows = Run(tasks, count=8).rows(model, "fake")
    found = {(row.case, row.metric): row.value for row in rows}
    assert found[copy.name, "right"] == 1.0
    assert found[shuffle.name, "right"] == 0.0, "a shuffled line differs"
    assert found[copy.name, "answers"] == 8
    assert found[copy.name, "right_low"] < 1.0  # type: ignore[operator]
    assert [row.metric for row in rows if row.value is None] == [
        "skipped: its texts have licences of their own, and models judge the answers"
    ]
    assert "100.0%" in table(rows)
