"""The live picture of a thought: a line for each thread, never more than the terminal has."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator, Sequence

import pytest
from rich.console import Console

from tests.cli.hostile import ALL, FORBIDDEN
from tests.workflow import thread_strategy
from weft.cli.run.listeners import NodeOutputLog
from weft.cli.threads.view import ThreadView
from weft.core.errors import ModelRequestError
from weft.engine.analysis.trace import Trace
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.strategies import make_strategy
from weft.testing import FakeClock, FakeModel, Reply
from weft.workflow.runtime.models.think import ThoughtRun


@pytest.fixture(autouse=True)
def _chorus() -> Iterator[None]:
    with thread_strategy.registered():
        yield


def frame(
    script: Sequence[Reply | str],
    until_s: float,
    *,
    threads: int,
    at_once: int | None = None,
    width: int = 100,
    height: int = 24,
) -> list[str]:
    """The lines that are on the terminal by then."""
    clock = FakeClock()

    async def main() -> str:
        trace, speech = Trace(), NodeOutputLog()
        strategy = make_strategy("chorus", FakeModel(script), ThinkOptions(width=threads))
        thought = ThoughtRun(
            strategy, Question("why?"), (trace, speech), concurrency=at_once, clock=clock
        )
        run = asyncio.create_task(thought.wait())
        await asyncio.sleep(until_s)
        console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
        with console.capture() as capture:
            console.print(ThreadView(trace, speech, None, until_s))
        run.cancel()
        await asyncio.wait((run,))
        return capture.get()

    return [line.rstrip() for line in clock.run(main()).splitlines()]


def row(lines: list[str], name: str) -> list[str]:
    return next(line.split() for line in lines if line.split()[:1] == [name])


def test_a_line_for_each_thread_says_what_it_does() -> None:
    slow = Reply("one two three four", per_token_s=1.0)
    broken = Reply("x", error=ModelRequestError("no"))
    lines = frame([slow, "at once", broken, slow], 1.5, threads=4, at_once=3)
    assert row(lines, "answer")[1] == "waiting"
    assert row(lines, "voices/voice0")[1:] == ["writing", "1.5", "s", "2", "tok", "one", "two"]
    assert row(lines, "voices/voice1")[1:6] == ["done", "0.0", "s", "2", "tok"]
    assert row(lines, "voices/voice2")[1] == "failed"
    assert row(lines, "voices/voice3")[1] == "writing"
    assert lines[0].split()[1:3] == ["think", "1.50"]


def test_a_thread_without_a_slot_is_queued() -> None:
    slow = Reply("one two", per_token_s=1.0)
    lines = frame([slow], 0.5, threads=3, at_once=1)
    states = [row(lines, f"voices/voice{number}")[1] for number in range(3)]
    assert states == ["writing", "queued", "queued"]


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("height", [8, 24])
def test_it_folds_what_has_ended_and_fits_the_terminal(width: int, height: int) -> None:
    quick, slow = Reply("a"), Reply("b c d", per_token_s=1.0)
    script = [quick] * 30 + [slow, slow]
    lines = frame(script, 0.5, threads=32, width=width, height=height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert any("oice30" in line for line in lines)
    assert any("oice31" in line for line in lines)
    assert any("more" in line and "done" in line for line in lines)


def test_hostile_words_do_not_reach_the_terminal() -> None:
    lines = frame([Reply(f"{ALL} {ALL}", per_token_s=0.01)], 0.3, threads=2)
    assert not set("".join(lines)) & set(FORBIDDEN)
