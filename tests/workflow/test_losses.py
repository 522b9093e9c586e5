"""A run says what is missing of its lists: a partial result is no success."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from weft import Flow, load, tool
from weft.testing import FakeModel, MemoryJournal


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
