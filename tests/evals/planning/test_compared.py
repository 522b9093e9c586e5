"""The systems on small tasks: same calls, same latencies of tools, and who waits for what."""

from __future__ import annotations

import pytest

from evals.engine.rows import Lookup
from evals.planning.orchestration.measuring import WrongAnswer, in_virtual_time
from evals.planning.orchestration.rows import latency_rows
from evals.planning.orchestration.script import Style
from evals.planning.orchestration.setting import SPEEDS, Setting, Speed
from evals.planning.orchestration.stall import lag_s
from evals.planning.orchestration.systems import SYSTEMS, System
from evals.planning.orchestration.tools import CannedTools
from tests.evals.planning.tasks import DIAMOND, chain
from weft.testing import FakeClock

_USUAL = Setting(SPEEDS["medium"], Style(calls=10, answer=10))


def test_every_system_answers_and_makes_the_calls_of_the_gold_plan() -> None:
    results = in_virtual_time(SYSTEMS, [DIAMOND], _USUAL)
    assert {name: runs[0].tool_calls for name, runs in results.items()} == dict.fromkeys(SYSTEMS, 4)
    calls = {name: runs[0].model_calls for name, runs in results.items()}
    assert calls["react"] == calls["react_text"] == 5
    assert calls["divide"] == calls["parallel_react"] == 4
    assert calls["compiler"] == calls["llmcompiler_loop"] == 2
    assert calls["compiler_line"] == 1 + 5  # a request for each line


@pytest.mark.parametrize("spelling", ["", "_text"])
def test_the_compiler_and_the_loop_write_the_same_tokens(spelling: str) -> None:
    systems = (f"compiler{spelling}", f"llmcompiler_loop{spelling}")
    results = in_virtual_time(systems, [DIAMOND], _USUAL)
    written = {runs[0].completion_tokens for runs in results.values()}
    assert len(written) == 1


def test_with_nothing_but_tools_the_compiler_takes_the_critical_path() -> None:
    setting = Setting(Speed(0.0, 0.0), Style(0, 0))
    tools = CannedTools(DIAMOND.tools)
    latest = max(tools.latency_s("echo", {"of": "a", "plus": plus}) for plus in (1, 2))
    path = tools.latency_s("echo", {"of": "a"}) + latest
    path += tools.latency_s("echo", {"of": ["a+1", "a+2"]})
    runs = in_virtual_time(("compiler",), [DIAMOND], setting)["compiler"]
    assert runs[0].latency_s == pytest.approx(path)


def test_a_ready_step_starts_at_once_however_long_the_planner_is_silent() -> None:
    clock = FakeClock()
    assert clock.run(lag_s("compiler", clock)) < 0.001


def test_latencies_are_the_same_for_all_and_scale() -> None:
    one, other = CannedTools(DIAMOND.tools), CannedTools(DIAMOND.tools)
    assert one.latency_s("echo", {"of": "x"}) == other.latency_s("echo", {"of": "x"})
    assert one.latency_s("echo", {"of": "x"}) != one.latency_s("echo", {"of": "y"})
    slow = CannedTools(DIAMOND.tools, scale=3.0)
    assert slow.latency_s("echo", {"of": "x"}) == pytest.approx(
        3 * one.latency_s("echo", {"of": "x"})
    )
    assert CannedTools(DIAMOND.tools, seed=1).latency_s("echo", {"of": "x"}) != one.latency_s(
        "echo", {"of": "x"}
    )


def test_a_wrong_answer_is_an_error_and_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object) -> str:
        return "something else"

    monkeypatch.setitem(SYSTEMS, "idle", System("plan", nothing))
    with pytest.raises(WrongAnswer, match="idle on diamond: 'something else' after 0 of 4"):
        in_virtual_time(("idle",), [DIAMOND], _USUAL)


def test_rows_compare_task_by_task() -> None:
    results = in_virtual_time(
        ("compiler", "react", "llmcompiler_loop"), [DIAMOND, chain(3, 0.3)], _USUAL
    )
    figures = Lookup(latency_rows("small", results))
    ratios = [
        react.latency_s / own.latency_s
        for react, own in zip(results["react"], results["compiler"], strict=True)
    ]
    assert figures("small", "compiler", "speedup_to_react_least") == min(ratios)
    assert figures("small", "compiler", "speedup_to_react") == pytest.approx(sum(ratios) / 2)
    assert figures("small", "react", "speedup_to_react") is None
    assert figures("small", "compiler", "tasks") == 2
