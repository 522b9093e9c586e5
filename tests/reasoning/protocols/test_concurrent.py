"""Hogwild! and Group Think: who sees whom, what ends them, and what a chat model does instead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from weft.core.errors import BuildError, ModelUnavailable, ReasoningError
from weft.core.ports import (
    AttentionLayout,
    Capabilities,
    ConcurrentAttention,
    ModelEvent,
    ModelRequest,
    TextDelta,
)
from weft.core.values import Completion, Usage
from weft.engine import RunOptions
from weft.reasoning.concurrent import workers
from weft.reasoning.concurrent.workers import BoxScanner
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Document, Question
from weft.reasoning.strategies import make_strategy
from weft.reasoning.strategy import run_thought
from weft.reasoning.thought import Thought
from weft.testing import FakeClock

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


class Room:
    """A model whose workers say their scripts, a word each second; `asked` are all requests."""

    model = "room"

    def __init__(
        self, *scripts: str, layouts: tuple[AttentionLayout, ...] = (), answer: str = "42"
    ) -> None:
        self.asked: list[ModelRequest] = []
        self._scripts = list(scripts)
        self._answer = answer
        self._layouts = layouts

    async def capabilities(self) -> Capabilities:
        return Capabilities(layouts=self._layouts, structured_output=True)

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        number = len(self.asked)
        self.asked.append(request)
        script = self._scripts[number] if number < len(self._scripts) else self._answer
        if script == "fail":
            raise ModelUnavailable("gone", retryable=False)
        words = script.split(" ")[: request.sampling.max_tokens]
        for word in words:
            await asyncio.sleep(1)
            yield TextDelta(f"{word} ", (7,))
        text = "".join(f"{word} " for word in words)
        yield Completion(text, usage=Usage(5, len(words), requests=1), token_ids=(7,) * len(words))

    async def aclose(self) -> None:
        """Nothing is held."""


def think(
    room: Room, name: str = "hogwild", question: Question | None = None, **options: object
) -> Thought:
    strategy = make_strategy(name, room, ThinkOptions(**options))  # type: ignore[arg-type]
    asked = question or Question("What is six times seven?")
    return FakeClock().run(run_thought(strategy, asked, options=RunOptions()))


def test_workers_of_hogwild_are_told_of_one_another() -> None:
    room = Room("one two", "three", layouts=("combined",))
    thought = think(room, max_tokens=50)
    first, second, last = room.asked
    assert first.messages == second.messages
    assert "Alice, Bob" in first.messages[0].content
    assert first.sampling.seed != second.sampling.seed
    places = [first.attention, second.attention]
    assert all(place is not None for place in places)
    one, two = (place for place in places if place is not None)
    assert one == replace(two, index=0, opening=one.opening)
    assert (two.workers, two.index, two.layout) == (2, 1, "combined")
    assert two.opening == "**Bob [{step}]:** "
    assert "others" in one.others
    assert one.own
    assert one.nudge
    assert last.attention is None
    assert "one two" in last.messages[-1].content
    assert "three" in last.messages[-1].content
    assert (thought.answer, thought.key) == ("42", "42")
    assert (thought.fidelity, thought.lost) == ("exact", "")
    assert [sample.text for sample in thought.samples] == ["one two ", "three "]
    assert thought.counts.total_tokens == 4
    assert thought.counts.critical_path_tokens == 2 + 1


def test_thinkers_have_positions_of_their_own() -> None:
    room = Room("a", "b", "c", layouts=("slots",))
    think(room, "group-think", settings={"thinkers": 3})
    places = [request.attention for request in room.asked[:3]]
    assert [place and place.layout for place in places] == ["slots"] * 3
    assert [place and place.opening for place in places] == [f"Thinker {n}: " for n in (1, 2, 3)]
    assert "3 thinkers" in room.asked[0].messages[0].content


@pytest.mark.parametrize("name", ["hogwild", "group-think"])
def test_a_model_without_the_layout_writes_alone_and_says_what_is_lost(name: str) -> None:
    room = Room("one", "two", layouts=("contiguous",))
    thought = think(room, name, width=2)
    assert all(request.attention is None for request in room.asked)
    assert "worker 1 of 2" in room.asked[0].messages[0].content
    assert "worker 2 of 2" in room.asked[1].messages[0].content
    assert thought.fidelity == "approximate"
    assert "room does not take the layout" in thought.lost


def test_the_first_box_ends_the_others() -> None:
    long = " ".join(["word"] * 100)
    room = Room(long, "so it is \\boxed{42}. and more of it", layouts=("combined",))
    thought = think(room)
    assert len(room.asked) == 2
    assert thought.why == "worker 1 found an answer"
    assert thought.key == "42"
    assert [sample.status for sample in thought.samples] == ["cancelled", "finished"]
    assert thought.counts.total_tokens <= 2 * 5
    assert thought.tree is not None
    assert thought.tree.state.ended


def test_an_answer_with_a_schema_is_asked_for() -> None:
    room = Room("\\boxed{42}", "b", layouts=("combined",), answer='{"n":42}')
    thought = think(room, question=Question("?", schema=SCHEMA))
    assert room.asked[2].schema == SCHEMA
    assert thought.answer == '{"n":42}'


def test_a_worker_that_fails_leaves_the_work_to_the_others() -> None:
    room = Room("fail", "b", layouts=("combined",))
    thought = think(room)
    assert [sample.status for sample in thought.samples] == ["failed", "finished"]
    assert thought.answer == "42"


def test_nobody_writes() -> None:
    with pytest.raises(ReasoningError, match="gone"):
        think(Room("fail", "fail", layouts=("combined",)))


@pytest.mark.parametrize("budget", [1, 2, 7, 30, 200])
@pytest.mark.parametrize("workers", [1, 3])
def test_the_budget_is_never_exceeded(budget: int, workers: int) -> None:
    room = Room(*[" ".join(["word"] * 100)] * workers, layouts=("combined",))
    thought = think(
        room, budget=budget, max_tokens=60, answer_tokens=20, settings={"workers": workers}
    )
    assert thought.counts.total_tokens <= budget
    assert thought.answer


def test_documents_and_the_system_text_are_shown_to_all() -> None:
    room = Room("a", "b", layouts=("combined",))
    think(room, question=Question("?", "Be brief.", (Document("a.txt", "the facts"),)))
    for request in room.asked:
        assert request.messages[0].content.startswith("Be brief.")
        assert "the facts" in request.messages[-1].content


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("hogwild", {"workers": 9}, "9 workers"),
        ("hogwild", {"workers": 0}, "0 workers"),
        ("hogwild", {"layout": "slots"}, "no layout 'slots'"),
        ("hogwild", {"nudge_tokens": 0}, "nudge_tokens"),
        ("hogwild", {"thinkers": 2}, "no setting 'thinkers'"),
        ("group-think", {"thinkers": 9}, "9 workers"),
    ],
)
def test_settings_are_checked_before_anything_runs(
    name: str, settings: dict[str, object], said: str
) -> None:
    with pytest.raises(BuildError, match=said):
        make_strategy(name, Room(), ThinkOptions(settings=settings))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\\boxed{4}", True),
        ("\\boxed{\\frac{1}{2}", False),
        ("\\boxed{\\frac{1}{2}} and", True),
        ("\\boxed{}", False),
        ("\\boxed{ }", False),
        ("{4}", False),
        ("", False),
        ("\\boxed{4} \\boxed{", True),
        ("\\boxed{} \\boxed{4}", True),
        ("\\\\boxed{4}", True),
        ("\\bo\\boxed{4}", True),
        ("\\boxed {4}", False),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_boxes(text: str, found: bool, size: int) -> None:
    scanner = BoxScanner()
    said = [scanner.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert any(said) is found


def test_what_a_worker_wrote_is_not_read_again_for_each_of_its_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[int] = []
    text = workers._GroupWorker.text.fget
    assert text is not None

    def counted(worker: workers._GroupWorker) -> str:
        read.append(worker.index)
        return text(worker)

    monkeypatch.setattr(workers._GroupWorker, "text", property(counted))
    long = " ".join(["word"] * 300)
    think(Room(long, long, layouts=("combined",)), max_tokens=300)
    assert 0 < len(read) < 20


def test_an_index_belongs_to_the_group() -> None:
    for index in (-1, 2):
        with pytest.raises(ValueError, match="none of a group of 2"):
            ConcurrentAttention("g", 2, index)
    with pytest.raises(ValueError, match="nudge_tokens"):
        ConcurrentAttention("g", 2, 0, nudge_tokens=0)
