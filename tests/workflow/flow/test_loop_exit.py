"""Loops that end in the middle of an iteration, with the value of a `break`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.cli.command_line import go_into, typed
from weft.errors import BuildError, SourceError
from weft.testing import FakeClock, FakeModel, MemoryJournal

IMPROVE = """\
name: improve
inputs: {start: integer, stop: integer}
nodes:
  refined:
    loop:
      nodes:
        draft: {value: "{{ number + 1 }}"}
        enough: {break: "{{ draft >= stop }}", value: "{{ draft * 100 }}"}
        second: {value: "{{ draft * 2 }}"}
      result: "{{ second }}"
    as: number
    start: "{{ start }}"
    until: "{{ number > 1000 }}"
    max: 4
outputs: {refined: "{{ refined }}"}
"""


def improving(folder: Path, text: str = IMPROVE) -> weft.Flow:
    file = folder / "improve.yaml"
    file.write_text(text)
    return weft.load(file)


def refused(folder: Path, text: str) -> str:
    with pytest.raises(SourceError) as caught:
        improving(folder, text)
    return str(caught.value)


def run(flow: weft.Flow, **inputs: Any) -> Any:
    result = flow.run_sync(**inputs)
    assert result.ok, result.failures
    return result.outputs


@pytest.mark.parametrize(
    ("start", "stop", "value"),
    [(0, 1, 100), (0, 3, 300), (0, 5, 700), (0, 99, 30), (2000, 9000, 4002)],
)
def test_a_break_ends_the_loop_with_its_value(
    tmp_path: Path, start: int, stop: int, value: int
) -> None:
    assert run(improving(tmp_path), start=start, stop=stop) == {"refined": value}


def noting() -> tuple[list[str], Callable[[str, Any], Any]]:
    """A record of calls, and a function that records one and returns its value."""
    calls: list[str] = []

    def note(what: str, value: Any) -> Any:
        calls.append(what)
        return value

    return calls, note


def test_what_is_made_after_a_break_does_not_run() -> None:
    calls, note = noting()
    flow = weft.Flow("two")
    stop = flow.input("stop", int)

    def body(value: Any) -> Any:
        first = flow.call(note, "first", value + 1)
        flow.break_if(first >= stop, {"left": first})
        unrelated = flow.call(note, "unrelated", 0)
        second = flow.call(note, "second", first)
        flow.break_if(second + unrelated >= 3, "at the second")
        flow.call(note, "third", 0)
        return second

    flow.output(value=flow.loop(0, body, until="{{ false }}", max=9))
    assert run(flow, stop=2) == {"value": {"left": 2}}
    assert sorted(calls) == ["first", "first", "second", "third", "unrelated"]
    calls.clear()
    assert run(flow, stop=9) == {"value": "at the second"}
    assert (calls.count("first"), calls.count("second"), calls.count("third")) == (3, 3, 2)


def test_a_result_is_not_computed_when_the_loop_has_ended() -> None:
    flow = weft.Flow("divide")
    by = flow.input("by", int)

    def body(value: Any) -> Any:
        flow.break_if(by == 0, "never")
        return 10 / by

    flow.output(value=flow.loop(1, body, until="{{ true }}", max=1))
    assert run(flow, by=0) == {"value": "never"}
    assert run(flow, by=2) == {"value": 5.0}


def test_a_break_ends_only_the_innermost_loop() -> None:
    flow = weft.Flow("nested")
    rounds = flow.input("rounds", int)

    def inner(number: Any) -> Any:
        step = flow.value(number + 1)
        flow.break_if(step == 3, step)
        return step

    def outer(total: Any) -> Any:
        three = flow.loop(0, inner, until="{{ false }}", max=9)
        sum_ = flow.value(total + three)
        flow.break_if(sum_ >= rounds * 3, [sum_])
        return sum_

    flow.output(value=flow.loop(0, outer, until="{{ false }}", max=9))
    assert run(flow, rounds=2) == {"value": [6]}


def test_joins_and_maps_after_a_break_wait_for_it() -> None:
    calls, note = noting()
    flow = weft.Flow("joined")
    stop = flow.input("stop", bool)

    def body(value: Any) -> Any:
        a, b = flow.call(note, "a", 1), flow.call(note, "b", 2)
        flow.break_if(stop, "left")
        both = flow.join(a, b, mode="all")
        return flow.map(both, lambda item: flow.call(note, "item", item))

    flow.output(value=flow.loop(0, body, until="{{ true }}", max=3))
    assert run(flow, stop=True) == {"value": "left"}
    assert "item" not in calls
    assert run(flow, stop=False) == {"value": [1, 2]}


def test_models_after_a_break_are_not_asked() -> None:
    model = FakeModel(["draft one", "good: yes", "never"])
    flow = weft.Flow("critic", models={"small": model})

    def body(draft: Any) -> Any:
        better = flow.model("small", f"Improve {draft}")
        verdict = flow.model("small", f"Is it good? {better}")
        flow.break_if("{{ 'yes' in verdict }}", better)
        return flow.model("small", f"Again {verdict}")

    flow.output(text=flow.loop("a note", body, until="{{ false }}", max=3))
    assert run(flow) == {"text": "draft one"}
    assert len(model.requests) == 2


def test_a_run_that_ended_in_the_middle_is_resumed_there() -> None:
    calls, note = noting()
    broken = [True]

    def check(value: int) -> int:
        calls.append("check")
        if value == 2 and broken:
            raise RuntimeError("the service is down")
        return value

    flow = weft.Flow("resumed")

    def body(value: Any) -> Any:
        first = flow.call(note, "first", value + 1)
        checked = flow.call(check, first)
        flow.break_if(checked == 3, f"left at {checked}")
        return flow.call(note, "after", checked)

    flow.output(value=flow.loop(0, body, until="{{ false }}", max=9))
    journal = MemoryJournal()

    async def twice() -> tuple[Any, Any]:
        first = await flow.run(journal=journal)
        broken.clear()
        return first, await flow.resume(journal=journal).wait()

    first, second = asyncio.run(twice())
    assert not first.ok
    assert second.outputs == {"value": "left at 3"}
    assert calls == [
        "first",
        "check",
        "after",
        "first",
        "check",
        "check",
        "after",
        "first",
        "check",
    ]


def test_simulation_of_a_run_with_a_break(tmp_path: Path) -> None:
    journal, clock = MemoryJournal(), FakeClock()
    flow = improving(tmp_path)
    result = clock.run(flow.run(start=0, stop=5, journal=journal, clock=clock))
    assert result.outputs == {"refined": 700}
    simulated = weft.simulate("last", journal=journal)
    assert [run.status for run in simulated.runs] == ["succeeded"]


def test_replay_of_a_run_with_a_break(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_into(tmp_path, monkeypatch)
    improving(tmp_path)
    ran = typed("run", "improve.yaml", "-i", "start=0", "-i", "stop=5")
    assert ran.exit_code == 0, ran.output
    replayed = typed("replay", "last")
    assert (replayed.exit_code, "identical" in replayed.stdout) == (0, True), replayed.output


def test_the_value_of_a_break_joins_the_type_of_the_loop(tmp_path: Path) -> None:
    text = IMPROVE.replace('value: "{{ draft * 100 }}"', "value: {n: 1}").replace(
        'result: "{{ second }}"', "result: {n: 2}"
    )
    improving(tmp_path, text.replace('refined: "{{ refined }}"', 'refined: "{{ refined.n }}"'))
    wrong = text.replace('refined: "{{ refined }}"', 'refined: "{{ refined.m }}"')
    with pytest.raises(SourceError, match="no property 'm'"):
        improving(tmp_path, wrong).check()
    improving(tmp_path, wrong.replace("value: {n: 1}", "value: {m: 1}")).check()


REFUSALS = [
    ("draft * 100 }}", 'draft * 100 }}", when: "{{ true }}', "`when` does not go with `break`"),
    ('result: "{{ second }}"', 'result: "{{ enough }}"', "has no value for other nodes"),
    ("draft >= stop", "second >= stop", "`enough` needs `second`, which needs `enough`"),
    ('break: "{{ draft >= stop }}"', "break: draft", "only a text here"),
    (', value: "{{ draft * 100 }}"', "", "value"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSALS)
def test_what_a_break_cannot_have_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert message in refused(tmp_path, IMPROVE.replace(old, new))


def test_a_break_outside_of_a_loop_is_refused_with_the_remedy() -> None:
    flow = weft.Flow("top")
    flow.break_if("{{ true }}", 1)
    flow.output(value=flow.value(2))
    with pytest.raises(BuildError, match="directly among the `nodes` of a loop") as caught:
        flow.check()
    assert "`when`" in str(caught.value)

    nested = weft.Flow("case")

    def case() -> Any:
        nested.break_if("{{ true }}", 1)
        return 2

    def body(value: Any) -> Any:
        return nested.branch("{{ true }}", {True: case, False: 3})

    nested.output(value=nested.loop(0, body, until="{{ true }}", max=2))
    with pytest.raises(BuildError, match="beside the node around it"):
        nested.check()


def test_the_drawing_shows_what_waits_for_a_break(tmp_path: Path) -> None:
    drawn = improving(tmp_path).mermaid()
    assert "n_refined_enough -.-> n_refined_second" in drawn
    assert "n_refined_draft --> n_refined_enough" in drawn
