"""Recorded runs on fakes, in virtual time: what it takes to make one, leave one, go on with one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import weft
from tests.workflow.case import echo, search
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest
from weft.core.values import Effect, ToolSpec
from weft.testing import FakeClock, FakeModel, FakeTools, MemoryJournal, Reply
from weft.workflow import FlowResult, FlowRun
from weft.workflow.history.run_history import RunHistory, read_history

Script = Callable[[ModelRequest], Reply | str]


class House:
    """A journal, a clock, and fakes that count: what is called how often."""

    def __init__(self, script: Script = echo, **tools: Callable[..., Any]) -> None:
        self.clock = FakeClock()
        self.journal = MemoryJournal(self.clock)
        self.script = script
        self.asked: list[str] = []
        self.effect: Effect = "unknown"
        self.tools: dict[str, Callable[..., Any]] = {"search": search, **tools}

    def settings(self, **more: Any) -> dict[str, Any]:
        """Settings of a run in this house."""

        def asked(request: ModelRequest) -> Reply | str:
            self.asked.append(request.messages[-1].content)
            return self.script(request)

        return {
            "models": {"small": FakeModel(asked)},
            "tools": _Tools(self.effect, self.tools),
            "journal": self.journal,
            "clock": self.clock,
            **more,
        }

    def run(
        self, flow: weft.Flow, answers: Mapping[str, Any] | None = None, **more: Any
    ) -> FlowResult:
        """A recorded run to its end."""
        return self.wait(
            lambda: flow.start(more.pop("inputs", {}), **self.settings(**more)), answers
        )

    def left(self, flow: weft.Flow, after_s: float, **more: Any) -> FlowResult:
        """A recorded run that its process leaves after so many seconds."""
        return self.wait(
            lambda: flow.start(more.pop("inputs", {}), **self.settings(**more)), pause_s=after_s
        )

    def resume(
        self,
        flow: weft.Flow,
        answers: Mapping[str, Any] | None = None,
        run: str = "last",
        **more: Any,
    ) -> FlowResult:
        """The next part of a run, to its end."""
        settings = {**self.settings(), "questions": "wait", **more}
        return self.wait(lambda: flow.resume(run, **settings), answers)

    def wait(
        self,
        start: Callable[[], FlowRun],
        answers: Mapping[str, Any] | None = None,
        pause_s: float | None = None,
    ) -> FlowResult:
        """The end of what `start` prepares; `answers` are given as soon as they are asked for."""

        async def main() -> FlowResult:
            run = start()
            if pause_s is not None:
                asyncio.get_running_loop().call_later(pause_s, run.pause, "left")
            waiting = asyncio.create_task(run.wait())
            left = dict(answers or {})
            while left and not waiting.done():
                for node in [node for node in run.questions if node in left]:
                    run.answer(node, left.pop(node))
                await asyncio.sleep(0.01)
            return await waiting

        return self.clock.run(main())

    def story(self, run: str | None = None) -> RunHistory:
        """What is recorded of a run, or of the latest."""
        summaries = self.journal.runs()
        found = next(s.run for s in summaries if run is None or s.run == run)
        return read_history(self.journal, found)


class _Tools(FakeTools):
    def __init__(self, effect: Effect, tools: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(**tools)
        self._effect = effect

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(replace(spec, effect=self._effect) for spec in super().specs())


def ended(story: RunHistory) -> dict[NodeId, str]:
    """How each node ended."""
    return {node: outcome.status for node, outcome in story.outcomes.items()}
