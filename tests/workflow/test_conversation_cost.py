"""A recorded conversation costs in each turn what is new in it: counted in calls of functions."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import weft
from weft.core.ports import Capabilities, ModelRequest
from weft.durability.journal import SqliteJournal
from weft.testing import FakeModel

TURNS = 40
SECRET = "sk-0123456789-abcdef"
ABLE = Capabilities(structured_output=True, tools=True, max_context_tokens=1_000_000)
WEFT = str(Path(weft.__file__).parent)


class Turns:
    """Counts the calls of weft's functions, turn by turn."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self._count = 0

    def begin(self) -> None:
        """The next turn begins."""
        self.calls.append(self._count)
        self._count = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            name = frame.f_code.co_filename
            self._count += name.startswith(WEFT) and "/weft/testing/" not in name

    def mean(self, first: int, last: int) -> float:
        """Of the turns from `first` to before `last`."""
        return sum(self.calls[first:last]) / (last - first)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with closing(SqliteJournal(tmp_path / "journal.sqlite")) as made:
        yield made


def run(flow: weft.Flow, journal: SqliteJournal, turns: Turns) -> Any:
    async def watched() -> Any:
        sys.setprofile(turns)
        try:
            return await flow.run(journal=journal)
        finally:
            sys.setprofile(None)

    result = asyncio.run(watched())
    assert result.ok, result.reasons
    return result


def assert_flat(turns: Turns) -> None:
    assert len(turns.calls) >= TURNS
    early, late = turns.mean(8, 18), turns.mean(TURNS - 10, TURNS)
    assert late < 1.02 * early + 20, (early, late)


@pytest.mark.parametrize("said", ["a message of no interest", f"the key is {SECRET}"])
@pytest.mark.parametrize("shape", [dict, list])
def test_messages_in_the_state_of_a_loop(
    said: str, shape: type, journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    turns = Turns()

    @weft.tool(effect="pure")
    async def talk(number: int, messages: list[Any]) -> list[Any]:
        turns.begin()
        text = said if number == 3 else f"{number} " * 100
        new = [shape({"role": role, "content": text}.items()) for role in ("user", "assistant")]
        return [*messages, *new]

    flow = weft.Flow("talk")
    flow.output(
        said=flow.loop(
            [],
            lambda messages, iteration: flow.tool(talk, iteration, messages),
            until=f"{{{{ messages | length == {2 * TURNS} }}}}",
            max=TURNS,
            name="talk",
        )
    )
    result = run(flow, journal, turns)
    assert len(result.outputs["said"]) == 2 * TURNS
    assert_flat(turns)
    kept = [numbered.record for numbered in journal.records(journal.runs()[0].run)]
    assert SECRET not in repr(kept)
    assert ("[secret:SOME_API_KEY]" in repr(kept)) is (SECRET in said)


def test_the_messages_of_an_agent(journal: SqliteJournal) -> None:
    turns = Turns()

    @weft.tool(effect="pure")
    async def look(n: int) -> str:
        return f"{n} " * 100

    def script(request: ModelRequest) -> str:
        turns.begin()
        asked = len(request.messages) // 2
        if asked > TURNS:
            return json.dumps({"thought": "so", "answer": "tea"})
        return json.dumps({"thought": "so", "call": {"tool": "look", "arguments": {"n": asked}}})

    model = FakeModel(script, capabilities=ABLE)
    flow = weft.Flow("agent", models={"m": model}, tools={"look": look})
    agent = {"loop": "react", "calls": TURNS + 5}
    flow.output(said=flow.model("m", "What is cheaper?", tools=["look"], agent=agent))
    assert run(flow, journal, turns).outputs["said"] == "tea"
    assert len(model.requests[-1].messages) >= 2 * TURNS
    assert_flat(turns)
