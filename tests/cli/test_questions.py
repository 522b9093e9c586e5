"""Questions of a run: answered from options, from a terminal, or given up in order."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Awaitable, Callable

import pytest

from weft.cli.console import console_on
from weft.cli.run.listeners import QuietProgress
from weft.cli.run.questions import Keyboard, Questions
from weft.core.errors import UnknownReference
from weft.core.events import (
    Event,
    HumanAnswered,
    HumanAsked,
    NodeFinished,
    NodeInfo,
    NodeStarted,
    Outcome,
    RunStarted,
)
from weft.core.ids import NodeId, RunId
from weft.testing import FakeClock

ASK, OTHER, WORK = NodeId("approve"), NodeId("colour"), NodeId("work")


class Stage:
    """A run that only asks: plays events to the questions and keeps what they answer."""

    def __init__(self, given: dict[str, str], keyboard: Keyboard | None = None) -> None:
        self.out = io.StringIO()
        self.questions = Questions(given, keyboard)
        self.declined: list[NodeId] = []
        self.left = asyncio.Event()
        self.answers: dict[str, object] = {}
        self.cancelled = asyncio.Event()
        self.answered = asyncio.Event()
        self.reason = ""
        self.gone: set[NodeId] = set()
        self.play(RunStarted(RunId("r"), "f", "", tuple(map(info, (ASK, OTHER, WORK))), {}))

    def play(self, *events: Event) -> None:
        for event in events:
            self.questions(event)

    def answer(self, node: NodeId, value: object) -> None:
        if node in self.gone:
            raise UnknownReference(f"{node} asks nothing")
        self.answers[node] = value
        self.play(HumanAnswered(node, 1.0), NodeFinished(node, Outcome("succeeded", value), 1.0))
        self.answered.set()

    def decline(self, node: NodeId) -> None:
        self.declined.append(node)
        self.left.set()

    def pause(self, reason: str) -> None:
        self.reason = reason
        self.cancelled.set()

    async def serving(self, script: Callable[[], Awaitable[None]]) -> None:
        progress = QuietProgress(lambda: console_on(self.out))
        serving = asyncio.create_task(self.questions.serve(self, progress))
        await script()
        serving.cancel()
        await asyncio.wait([serving])
        assert serving.cancelled()


def info(node: NodeId) -> NodeInfo:
    return NodeInfo(node, "ask")


def asks(node: NodeId, schema: dict[str, object] | None = None) -> list[Event]:
    return [NodeStarted(node, 1, 0.0), HumanAsked(node, "go on?", schema or {}, 0.0)]


@pytest.fixture
def terminal() -> tuple[int, int]:
    reading, writing = os.pipe()
    return reading, writing


def test_given_answers_are_used_and_typed() -> None:
    async def main() -> Stage:
        stage = Stage({"approve": "yes", "nobody": "1"})

        async def script() -> None:
            stage.play(*asks(ASK, {"type": "boolean"}))
            await stage.answered.wait()

        await stage.serving(script)
        return stage

    stage = FakeClock().run(main())
    assert stage.answers == {"approve": True}
    assert stage.questions.unused() == ["nobody"]


def test_a_given_answer_that_does_not_fit_ends_the_run() -> None:
    async def main() -> Stage:
        stage = Stage({"approve": "perhaps"})

        async def script() -> None:
            stage.play(*asks(ASK, {"type": "boolean"}))
            await stage.cancelled.wait()

        await stage.serving(script)
        return stage

    stage = FakeClock().run(main())
    assert stage.questions.mistake is not None
    assert stage.questions.mistake.node == "approve"
    assert stage.answers == {}


def test_a_person_is_asked_again_until_the_answer_fits(terminal: tuple[int, int]) -> None:
    async def main() -> Stage:
        stage = Stage({}, Keyboard(terminal[0]))

        async def script() -> None:
            stage.play(*asks(ASK, {"type": "boolean"}))
            while "go on?" not in stage.out.getvalue():
                await asyncio.sleep(0)
            os.write(terminal[1], b"dunno\n")
            while "expected y or n" not in stage.out.getvalue():
                await asyncio.sleep(0)
            os.write(terminal[1], b"y\n")
            await stage.answered.wait()

        await stage.serving(script)
        return stage

    stage = asyncio.run(main())
    assert stage.answers == {"approve": True}
    os.close(terminal[1])


def test_several_questions_are_asked_one_after_another(terminal: tuple[int, int]) -> None:
    async def main() -> Stage:
        stage = Stage({}, Keyboard(terminal[0]))

        async def script() -> None:
            stage.play(*asks(ASK), *asks(OTHER, {"enum": ["red", "blue"]}))
            for text in (b"fine\n", b"2\n"):
                stage.answered.clear()
                prompts = stage.out.getvalue().count("asks:")
                while stage.out.getvalue().count("asks:") == prompts and not prompts:
                    await asyncio.sleep(0)
                os.write(terminal[1], text)
                await stage.answered.wait()
                while stage.out.getvalue().count("asks:") < 2:
                    await asyncio.sleep(0)

        await stage.serving(script)
        return stage

    stage = asyncio.run(main())
    assert stage.answers == {"approve": "fine", "colour": "blue"}
    assert stage.out.getvalue().index("approve") < stage.out.getvalue().index("colour")
    os.close(terminal[1])


def test_an_answer_to_a_question_that_went_away_is_dropped(terminal: tuple[int, int]) -> None:
    async def main() -> Stage:
        stage = Stage({"approve": "yes"}, Keyboard(terminal[0]))
        stage.gone.add(ASK)

        async def script() -> None:
            stage.play(*asks(ASK), *asks(OTHER))
            while "colour" not in stage.out.getvalue():
                await asyncio.sleep(0)
            os.write(terminal[1], b"red\n")
            await stage.answered.wait()

        await stage.serving(script)
        return stage

    assert asyncio.run(main()).answers == {"colour": "red"}
    os.close(terminal[1])


def test_what_was_typed_before_the_question_is_no_answer(terminal: tuple[int, int]) -> None:
    async def main() -> Stage:
        keyboard = Keyboard(terminal[0])
        stage = Stage({}, keyboard)

        async def script() -> None:
            stage.play(*asks(OTHER))
            while "colour" not in stage.out.getvalue():
                await asyncio.sleep(0)
            os.write(terminal[1], b"red\nno!\n")
            await stage.answered.wait()
            stage.answered.clear()
            while keyboard._lines.empty():
                await asyncio.sleep(0)
            stage.play(*asks(ASK))
            while "approve" not in stage.out.getvalue():
                await asyncio.sleep(0)
            os.write(terminal[1], b"yes\n")
            await stage.answered.wait()

        await stage.serving(script)
        return stage

    assert asyncio.run(main()).answers == {"colour": "red", "approve": "yes"}
    os.close(terminal[1])


def test_a_prompt_ends_with_its_node(terminal: tuple[int, int]) -> None:
    async def main() -> Stage:
        stage = Stage({}, Keyboard(terminal[0]))

        async def script() -> None:
            stage.play(*asks(ASK), *asks(OTHER))
            while "approve" not in stage.out.getvalue():
                await asyncio.sleep(0)
            stage.play(NodeFinished(ASK, Outcome("failed"), 5.0))
            while "colour" not in stage.out.getvalue():
                await asyncio.sleep(0)
            os.write(terminal[1], b"green\n")
            await stage.answered.wait()

        await stage.serving(script)
        return stage

    assert asyncio.run(main()).answers == {"colour": "green"}
    os.close(terminal[1])


def test_what_somebody_else_has_answered_is_not_given_up() -> None:
    async def main() -> Stage:
        stage = Stage({})

        async def script() -> None:
            stage.play(*asks(ASK), HumanAnswered(ASK, 0.0))  # and it works on the answer
            stage.play(*asks(OTHER), NodeFinished(ASK, Outcome("succeeded"), 5.0))
            await stage.left.wait()

        await stage.serving(script)
        return stage

    assert FakeClock().run(main()).declined == ["colour"]


def test_a_prompt_ends_with_an_answer_from_elsewhere(terminal: tuple[int, int]) -> None:
    async def main() -> Stage:
        stage = Stage({}, Keyboard(terminal[0]))

        async def script() -> None:
            stage.play(*asks(ASK))
            while "go on?" not in stage.out.getvalue():
                await asyncio.sleep(0)
            stage.play(HumanAnswered(ASK, 1.0), HumanAsked(ASK, "and then?", {}, 1.0))
            while "and then?" not in stage.out.getvalue():
                await asyncio.sleep(0)
            os.write(terminal[1], b"home\n")
            await stage.answered.wait()

        await stage.serving(script)
        return stage

    stage = asyncio.run(main())
    assert stage.answers == {"approve": "home"}
    assert stage.declined == []
    os.close(terminal[1])


def test_a_terminal_that_closes_leaves_the_question_unanswered(terminal: tuple[int, int]) -> None:
    async def main() -> Stage:
        stage = Stage({}, Keyboard(terminal[0]))

        async def script() -> None:
            stage.play(*asks(ASK), *asks(OTHER))
            while "approve" not in stage.out.getvalue():
                await asyncio.sleep(0)
            os.close(terminal[1])
            while len(stage.declined) < 2:
                await asyncio.sleep(0)

        await stage.serving(script)
        return stage

    assert set(asyncio.run(main()).declined) == {"approve", "colour"}
