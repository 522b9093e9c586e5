"""A run says what is missing of its lists: a partial result is no success."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from weft import Flow, FlowResult, load, tool
from weft.testing import FakeClock, FakeModel, MemoryJournal
from weft.workflow.history.replay import replay
from weft.workflow.history.run_history import read_history


class _Bad(Exception):
    pass


BROKEN = {3, 7}


@tool(pure=True)
def halve(i: int) -> int:
    """Half of it."""
    if i in BROKEN:
        raise _Bad(f"no {i}")
    return i // 2


@tool(pure=True)
def fail(i: int) -> int:
    """Nothing."""
    raise _Bad("boom")


def test_items_that_failed_make_the_run_partial_and_are_counted() -> None:
    flow = Flow("f")
    kept = flow.map(list(range(10)), lambda i: flow.tool(halve, i=i), mode="best_effort")
    flow.output(r=kept)
    result = flow.run_sync()
    assert result.outputs == {"r": [0, 0, 1, 2, 2, 3, 4, 4]}
    assert result.status == "partial"
    (reason,) = result.reasons
    assert reason.startswith("kept is partial: Incomplete: 2 of 10 items failed: ")
    assert "no 3" in reason
    assert "no 7" in reason


def test_a_map_of_which_nothing_is_left_has_failed() -> None:
    flow = Flow("f")
    kept = flow.map([1, 2, 3], lambda i: flow.tool(fail, i=i), mode="best_effort")
    flow.output(r=kept)
    result = flow.run_sync()
    assert (result.status, dict(result.outputs)) == ("failed", {})
    assert "3 of 3 items failed: fail raised _Bad: boom" in result.missing["r"]


@pytest.mark.parametrize("items", [[], [0, 1]])
def test_a_map_without_losses_succeeds(items: list[int]) -> None:
    flow = Flow("f")
    kept = flow.map(items, lambda i: flow.tool(halve, i=i), mode="best_effort")
    flow.output(r=kept)
    result = flow.run_sync()
    assert (result.status, result.reasons) == ("succeeded", ())


def test_what_stands_in_for_items_is_a_success_that_says_how_many() -> None:
    flow = Flow("f")
    kept = flow.map(
        [3, 4, 7], lambda i: flow.tool(halve, i=i), mode="best_effort", otherwise=None, width=1
    )
    flow.output(r=kept)
    result = flow.run_sync()
    assert result.outputs == {"r": [None, 2, None]}
    assert result.status == "succeeded"
    (reason,) = result.reasons
    assert reason.startswith("kept has what stands in: 2 of 3 items failed: ")


def test_items_that_are_left_out_on_purpose_are_no_loss() -> None:
    flow = Flow("f")
    kept = flow.map([1, 2], lambda i: flow.tool(halve, i=i, when=i > 1), mode="best_effort")
    flow.output(r=kept)
    assert flow.run_sync().status == "succeeded"


def test_the_branches_of_a_join_and_samples_count_too() -> None:
    flow = Flow("f", models={"m": FakeModel(["a", "", "b"])})
    good, bad = flow.tool(halve, i=2), flow.tool(fail, i=2, on_failure="skip")
    both = flow.join(good, bad, mode="best_effort")
    many = flow.model("m", "hi", samples=3)
    flow.output(both=both, many=many)
    result = flow.run_sync()
    assert result.outputs == {"both": [1], "many": ["a", "b"]}
    assert result.status == "partial"
    assert any("1 of 2 branches failed" in reason for reason in result.reasons)
    assert any("1 of 3 samples failed" in reason for reason in result.reasons)


def test_a_budget_that_degrades_counts_what_it_left_out() -> None:
    flow = Flow(
        "f",
        models={"m": FakeModel(lambda _: "two words")},
        budget={"tokens": 9, "on_reached": "degrade"},
    )
    kept = flow.map(list(range(10)), lambda i: flow.model("m", "hi"), mode="best_effort", width=1)
    alone = flow.model("m", "hi", after=kept)
    other = flow.model("m", "ho", after=kept)
    flow.output(r=kept, alone=alone, other=other)
    result = flow.run_sync()
    assert result.status == "partial"
    assert len(result.outputs["r"]) == 3
    assert any("7 of 10 items were skipped: budget reached" in r for r in result.reasons)
    assert any(reason.startswith("2 nodes were left out: budget") for reason in result.reasons)


def test_resume_tries_again_what_a_partial_list_lacks(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        "import pathlib\n\nimport weft\n\n\n@weft.tool(effect='idempotent')\n"
        "def half(i: int, idempotency_key: str) -> int:\n"
        "    '''Half.'''\n"
        f"    if i == 3 and not pathlib.Path({str(tmp_path / 'mended')!r}).exists():\n"
        "        raise ValueError('broken')\n"
        f"    with open({str(tmp_path / 'calls')!r}, 'a') as calls:\n"
        "        calls.write(f'{i}\\n')\n"
        "    return i // 2\n"
    )
    (tmp_path / "f.yaml").write_text(
        "name: f\nnodes:\n  halves:\n    map: [1, 2, 3]\n    as: i\n    mode: best_effort\n"
        "    do: {tool: ./tools.py:half, with: {i: '{{ i }}'}}\n"
        "outputs: {r: '{{ halves }}'}\n"
    )
    flow, journal = load(tmp_path / "f.yaml"), MemoryJournal()
    result = flow.run_sync(journal=journal)
    assert (result.status, result.outputs) == ("partial", {"r": [0, 1]})
    (tmp_path / "mended").touch()
    again = asyncio.run(flow.resume(result.run, journal=journal).wait())
    assert (again.status, again.outputs) == ("succeeded", {"r": [0, 1, 1]})
    assert sorted((tmp_path / "calls").read_text().split()) == ["1", "2", "3"]


def _waiting(clock: FakeClock, **given: Any) -> Flow:
    """Ten items that take 1 to 10 seconds."""

    @tool(pure=True)
    async def wait(i: int) -> int:
        """Wait."""
        await clock.sleep(i)
        return i

    flow = Flow("f", tools={"wait": wait})
    kept = flow.map(
        list(range(10, 0, -1)), lambda i: flow.tool("wait", i=i), mode="best_effort", **given
    )
    flow.output(r=kept, sum="{{ kept | sum }}" if "otherwise" not in given else kept)
    return flow


@pytest.mark.parametrize("recorded", [False, True])
def test_a_deadline_keeps_the_items_that_finished(recorded: bool) -> None:
    clock = FakeClock()
    flow, journal = _waiting(clock), MemoryJournal() if recorded else None
    result = clock.run(flow.run(clock=clock, deadline=3.5, journal=journal))
    assert (result.status, result.missing) == ("partial", {})
    assert result.outputs == {"r": [3, 2, 1], "sum": 6}, "in declared order"
    assert result.reasons == (
        "the deadline of 3.5 s passed",
        "kept is partial: Incomplete: 7 of 10 items were cancelled: the deadline of 3.5 s passed",
    )
    assert clock.now() == pytest.approx(3.5)


def test_otherwise_fills_what_a_deadline_cut_off() -> None:
    clock = FakeClock()
    result = clock.run(_waiting(clock, otherwise=0).run(clock=clock, deadline=2.5))
    assert result.outputs["r"] == [0] * 8 + [2, 1]
    assert result.status == "partial"
    assert any("8 of 10 items were cancelled" in reason for reason in result.reasons)


def test_a_deadline_before_the_first_item_leaves_nothing() -> None:
    clock = FakeClock()
    result = clock.run(_waiting(clock).run(clock=clock, deadline=0.5))
    assert (result.status, dict(result.outputs)) == ("partial", {})
    assert "the deadline of 0.5 s passed" in result.missing["r"]


def test_a_cancelled_run_keeps_no_list() -> None:
    clock = FakeClock()
    flow = _waiting(clock)

    async def main() -> FlowResult:
        run = flow.start(clock=clock)
        waiting = asyncio.ensure_future(run.wait())
        await clock.sleep(3.5)
        run.cancel("enough")
        return await waiting

    result = clock.run(main())
    assert (result.status, dict(result.outputs)) == ("cancelled", {})


@pytest.mark.parametrize("limit", [{"timeout": "3.5s"}, {"budget": {"time": "3.5s"}}])
def test_the_time_of_one_map_keeps_its_items_and_the_run_goes_on(limit: dict[str, Any]) -> None:
    clock = FakeClock()
    result = clock.run(_waiting(clock, **limit).run(clock=clock))
    assert (result.status, result.outputs) == ("partial", {"r": [3, 2, 1], "sum": 6})
    assert any("7 of 10 items were cancelled: " in reason for reason in result.reasons)


def test_a_map_that_tries_again_does_that_first() -> None:
    clock = FakeClock()
    retry = {"attempts": 2, "delay": 0}
    result = clock.run(_waiting(clock, timeout="3.5s", retry=retry).run(clock=clock))
    assert result.outputs["r"] == [3, 2, 1]
    assert clock.now() == pytest.approx(7)


def test_a_deadline_keeps_nested_maps_and_joins() -> None:
    clock = FakeClock()

    @tool(pure=True)
    async def wait(i: int) -> int:
        """Wait."""
        await clock.sleep(i)
        return i

    flow = Flow("f", tools={"wait": wait})

    def row(n: int) -> Any:
        return flow.map([1, 5, 2], lambda i: flow.tool("wait", i=i), mode="best_effort", name="row")

    rows = flow.map([1, 2], row, mode="best_effort")
    fast, slow = flow.tool("wait", i=1), flow.tool("wait", i=9)
    inner = flow.join(fast, slow, mode="best_effort")
    outer = flow.join(rows, inner, slow, mode="best_effort")
    flow.output(rows=rows, outer=outer)
    result = clock.run(flow.run(clock=clock, deadline=3))
    assert result.outputs["rows"] == [[1, 2], [1, 2]]
    assert result.outputs["outer"] == [[[1, 2], [1, 2]], [1]]
    assert result.status == "partial"
    assert any("1 of 3 branches were cancelled: " in reason for reason in result.reasons)


def test_a_budget_keeps_items_and_resume_with_more_makes_the_others() -> None:
    made: list[object] = []

    def answer(request: Any) -> str:
        made.append(request)
        return "two words"

    flow = Flow("f", models={"m": FakeModel(answer)}, budget={"tokens": 9})
    kept = flow.map(list(range(10)), lambda i: flow.model("m", "hi"), mode="best_effort", width=1)
    flow.output(r=kept)
    journal = MemoryJournal()
    result = flow.run_sync(journal=journal)
    assert result.status == "partial"
    assert result.outputs == {"r": ["two words"] * 2}
    assert any("8 of 10 items were cancelled: budget reached" in r for r in result.reasons)
    again = asyncio.run(flow.resume(result.run, journal=journal, budget={"tokens": 999}).wait())
    assert (again.status, again.outputs) == ("succeeded", {"r": ["two words"] * 10})
    assert len(made) == 11, "only the call that was cut off is made twice"


def test_what_a_deadline_kept_is_replayed_and_recorded() -> None:
    clock, journal = FakeClock(), MemoryJournal()
    flow = _waiting(clock)
    result = clock.run(flow.run(clock=clock, deadline=3.5, journal=journal))
    replayed = replay(read_history(journal, result.run), flow.unit)
    assert replayed.ok, replayed.report()
    assert replayed.result.outputs == {"r": [3, 2, 1], "sum": 6}
