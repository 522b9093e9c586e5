import asyncio
from typing import Any

import pytest

from weft.core.errors import BuildError, InternalError
from weft.core.ports import ModelRequest, complete
from weft.core.values import Message
from weft.reasoning.options import ThinkOptions, read_settings
from weft.reasoning.strategies import UnusedModel, make_strategy
from weft.reasoning.thought import (
    ThreadFork,
    ThreadRecord,
    ThreadSegment,
    ThreadState,
)
from weft.testing import FakeModel


@pytest.mark.parametrize(
    "wrong",
    [
        {"width": 0},
        {"budget": 0},
        {"path_tokens": 0},
        {"depth": -1},
        {"rounds": 0},
        {"max_tokens": 0},
        {"answer_tokens": 0},
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"top_p": 0.0},
        {"top_p": 1.5},
    ],
)
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ThinkOptions(**wrong)


def test_there_is_always_a_cap() -> None:
    assert ThinkOptions(width=2, max_tokens=10, rounds=3).cap == 60
    assert ThinkOptions(budget=7).cap == 7


def test_the_answer_gets_at_most_half_of_the_budget_and_of_the_path() -> None:
    assert ThinkOptions(budget=100, answer_tokens=80).kept == 50
    assert ThinkOptions(budget=100, path_tokens=30, answer_tokens=80).kept == 15
    assert ThinkOptions(answer_tokens=80).kept == ThinkOptions(answer_tokens=80).kept_of_path == 80
    assert ThinkOptions().path_left(99) is None
    assert ThinkOptions(path_tokens=30).path_left(20) == 10
    assert ThinkOptions(path_tokens=30).path_left(40) == 0


def test_settings_are_checked_by_name_and_type() -> None:
    defaults = {"paths": 2, "share": 0.5, "force": False, "lead": None}
    assert read_settings("x", {"paths": 3, "share": 1}, defaults) == {
        "paths": 3,
        "share": 1,
        "force": False,
        "lead": None,
    }
    with pytest.raises(BuildError, match=r"did you mean 'paths'\? there are: paths, share"):
        read_settings("x", {"path": 3}, defaults)
    for wrong in ({"paths": "3"}, {"paths": True}, {"share": "a"}, {"force": 1}):
        with pytest.raises(BuildError, match="for example"):
            read_settings("x", wrong, defaults)
    with pytest.raises(BuildError, match="it takes none"):
        read_settings("x", {"path": 3}, {})


def test_an_unknown_strategy_lists_those_there_are() -> None:
    with pytest.raises(BuildError, match=r"did you mean 'multiverse'\? there are: .*parathinker"):
        make_strategy("multivers", FakeModel(["x"]))


def test_a_strategy_that_asks_while_it_is_made_is_a_bug() -> None:
    model = UnusedModel()
    with pytest.raises(InternalError):
        asyncio.run(model.capabilities())
    with pytest.raises(InternalError):
        asyncio.run(complete(model, ModelRequest((Message("user", "hi"),))))
    asyncio.run(model.aclose())


def test_a_record_counts_its_longest_children() -> None:
    def child(tokens: int) -> ThreadRecord:
        return ThreadRecord("c", segments=(ThreadSegment((1,) * tokens, "c" * tokens),))

    tree = ThreadRecord(
        "root",
        segments=(
            ThreadSegment((1, 2), "ab"),
            ThreadFork((child(3), child(5))),
            ThreadSegment((9,), "|", forced=True, role="join"),
            ThreadSegment((4,), "d"),
            ThreadFork(()),
        ),
    )
    assert tree.text == "ab|d"
    assert tree.generated_tokens == 3
    assert tree.critical_path_tokens == 8
    shown = tree.as_json()
    assert shown["segments"][1]["fork"][1]["segments"][0]["tokens"] == 5
    assert shown["state"] == "done"
    assert ThreadState.CONTEXT_FULL.ended
    assert not ThreadState.WAITING.ended
