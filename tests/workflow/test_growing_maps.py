"""Maps that grow, and what nodes expect of their values."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft import Flow, load, loads, tool
from weft.engine.kinds import Growth
from weft.errors import ExpectationFailed, WeftError
from weft.testing import MemoryJournal

done: list[int] = []


@tool(pure=True)
def price(row: int) -> int:
    """A thousand times too much from row 900 on: a change of unit."""
    done.append(row)
    if row % 10 == 7:
        raise ValueError(f"no {row}")
    return row * 1000 if row >= 900 else row


@pytest.fixture(autouse=True)
def _fresh() -> None:
    done.clear()


def _grown(
    items: Sequence[int], grow: Mapping[str, object], flow: Flow | None = None, **more: Any
) -> Flow:
    flow = flow or Flow("prices")
    more = {"mode": "best_effort", "otherwise": -1} | more
    flow.output(r=flow.map(items, lambda row: flow.tool(price, row=row), grow=grow, **more))
    return flow


@given(st.integers(0, 300), st.integers(1, 50), st.floats(1.01, 9), st.integers(0, 9))
def test_steps_hold_each_index_once_and_grow(
    total: int, first: int, factor: float, seed: int
) -> None:
    steps = Growth(first, factor, seed, lambda *_: None).steps(total)
    assert sorted(index for step in steps for index in step) == list(range(total))
    assert all(step == sorted(step) and step for step in steps)
    whole = [sum(map(len, steps[:count])) for count in range(1, len(steps) + 1)]
    assert whole[:1] == ([min(first, total)] if total else [])
    assert all(
        after == total or after >= before * factor - 1e-6 for before, after in pairwise(whole)
    )


@settings(max_examples=15)
@given(st.lists(st.integers(0, 60), max_size=40), st.integers(1, 9), st.integers(0, 3))
def test_the_results_are_those_of_a_map_that_does_not_grow(
    items: list[int], first: int, seed: int
) -> None:
    grown = _grown(items, {"first": first, "factor": 2, "seed": seed}).run_sync()
    plain = Flow("plain")
    mapped = plain.map(
        items, lambda row: plain.tool(price, row=row), mode="best_effort", otherwise=-1
    )
    plain.output(r=mapped)
    assert grown.outputs == plain.run_sync().outputs


def test_a_refused_step_leaves_the_other_items_alone_and_shows_what_it_saw() -> None:
    accept = "{{ value | max < 900 }}"
    result = _grown(list(range(1000)), {"first": 20, "factor": 4, "accept": accept}).run_sync()
    assert result.status == "failed"
    assert len(done) in (20, 80, 320)
    assert max(done) >= 900
    assert "ExpectationFailed" in result.missing["r"]
    assert f"after {len(done)} of 1000 items" in result.missing["r"]
    assert accept in result.missing["r"]


def test_accept_is_not_asked_after_the_last_step_and_counts_failures() -> None:
    seen = "{{ failed * 3 <= done and total == 30 }}"
    result = _grown(list(range(30)), {"first": 9, "factor": 2, "accept": seen}).run_sync()
    assert result.status == "succeeded"
    assert len(done) == 30
    result = _grown([7] * 30, {"first": 9, "factor": 2, "accept": seen}).run_sync()
    assert "after 9 of 30 items, 9 of them failed" in result.missing["r"]


def test_items_left_out_on_purpose_have_no_result() -> None:
    flow = Flow("left_out")
    flow.output(
        r=flow.map(
            list(range(12)),
            lambda row: flow.tool(price, row=row, when=row % 2 == 0),
            grow={"first": 2, "factor": 2, "accept": "{{ failed == 0 }}"},
        )
    )
    assert flow.run_sync().outputs == {"r": [0, 2, 4, 6, 8, 10]}


def test_a_resumed_map_repeats_no_item_once_accept_is_mended() -> None:
    async def both() -> tuple[str, str, list[int]]:
        journal = MemoryJournal()
        strict = _grown(list(range(7)), {"first": 4, "factor": 2, "accept": "{{ done < 4 }}"})
        first = await strict.start(journal=journal, run="r").wait()
        before = sorted(done)
        mended = _grown(list(range(7)), {"first": 4, "factor": 2, "accept": "{{ done < 5 }}"})
        again = await mended.resume("r", journal=journal, accept_changes=True).wait()
        return first.status, again.status, before

    first, again, before = asyncio.run(both())
    assert (first, again, len(before)) == ("failed", "succeeded", 4)
    assert sorted(done) == list(range(7))


TOOLS = "import weft\n\n\n@weft.tool\ndef price(row: int) -> int:\n    return row\n"
YAML = """\
name: prices
tools: {price: "./tools.py:price"}
nodes:
  rows: {value: [1, 2, 3]}
  prices:
    map: "{{ rows }}"
    as: row
    GROW
    do: {tool: price, with: {row: "{{ row }}"}}
outputs: {r: "{{ prices }}"}
"""


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("grow: {first: 2}\n    mode: any", "needs a result of every item, and its mode is any"),
        ("grow: {}\n    mode: best_effort", "leave `mode` out, or take best_effort with"),
        ("grow: {first: 0}", "first"),
        ("grow: {factor: 1}", "factor"),
        ("grow: {accept: '{{ values }}'}", "values"),
        ("expect: {'few': '{{ valu }}'}", "valu"),
        ("expect: ['{{ value }}']", "expect"),
    ],
)
def test_what_cannot_grow_is_refused_with_its_place(keys: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    path = tmp_path / "flow.yaml"
    path.write_text(YAML.replace("GROW", keys))
    with pytest.raises(WeftError) as caught:
        load(path).check()
    assert says in str(caught.value)
    assert "flow.yaml:" in str(caught.value)


def test_a_file_and_python_mean_the_same(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    path = tmp_path / "flow.yaml"
    keys = "grow: {first: 1, factor: 2.0, accept: '{{ value | sum < 5 }}'}"
    path.write_text(YAML.replace("GROW", keys))
    assert load(path).run_sync().outputs == {"r": [1, 2, 3]}
    again = tmp_path / "again.yaml"
    again.write_text(load(path).to_yaml())
    assert load(again).run_sync().outputs == {"r": [1, 2, 3]}
    assert "accept:" in again.read_text()


def _expecting(value: object, expect: Mapping[str, Any], **options: Any) -> Any:
    flow = Flow("expects")
    flow.input("least", int, default=2)
    flow.output(r=flow.value(value, expect=expect, name="rows", **options))
    return flow.run_sync()


def test_a_value_that_is_as_expected_passes() -> None:
    expect = {
        "enough": "{{ value | length >= least }}",
        "unique": "{{ value | map(attribute='k') | unique | list | length == value | length }}",
        "a first row": lambda value: value[0].k == 1,
    }
    rows = [{"k": 1}, {"k": 2}]
    assert _expecting(rows, expect).outputs == {"r": rows}


def test_all_that_is_not_as_expected_is_named() -> None:
    expect = {
        "enough rows": "{{ value | length >= least }}",
        "a number": "{{ value[0] is number }}",
        "short": "{{ value | length < 9 }}",
    }
    missing = _expecting(["a"], expect).missing["r"]
    assert "it is not so that: enough rows; a number. " in missing
    assert '["a"]' in missing


def test_a_default_takes_the_place_of_an_unexpected_value() -> None:
    result = _expecting([], {"enough": "{{ value | length >= least }}"}, default=[0, 0])
    assert result.outputs == {"r": [0, 0]}


def test_an_unexpected_value_is_made_again_where_the_node_says_so() -> None:
    flow, made = Flow("again"), iter([[], [], [1]])

    @tool
    def rows() -> list[int]:
        """Some rows."""
        return next(made)

    flow.output(
        r=flow.tool(
            rows,
            expect={"some": lambda value: value != []},
            retry={"attempts": 3, "delay": 0},
            retry_on=ExpectationFailed,
        )
    )
    assert flow.run_sync().outputs == {"r": [1]}


def test_items_of_a_map_are_not_used_before_its_expectation_holds() -> None:
    flow = Flow("whole")
    rows = flow.map(
        [1, 2, 3],
        lambda row: flow.tool(price, row=row),
        expect={"low": lambda value: value[2] < 3},
    )
    flow.output(r=flow.map(rows, lambda row: flow.tool(price, row=row + 10)))
    assert flow.run_sync().status == "failed"
    assert sorted(done) == [1, 2, 3]


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("expect: {few: 'value | length < 9'}", "is only a text here"),
        ("grow: {frist: 2}", "did you mean `first`?"),
        ("grow: {acept: '{{ done }}'}", "did you mean `accept`?"),
    ],
)
def test_what_was_surely_meant_is_said(keys: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    path = tmp_path / "flow.yaml"
    path.write_text(YAML.replace("GROW", keys))
    with pytest.raises(WeftError) as caught:
        load(path).check()
    assert says in str(caught.value)


def test_a_misspelt_key_of_a_state_field_is_told_with_the_right_one() -> None:
    text = "name: s\nstate: {notes: {type: [string], reducer: append}}\nnodes: {a: {value: 1}}\n"
    with pytest.raises(WeftError, match="did you mean `reduce`"):
        loads(text + "outputs: {a: '{{ a }}'}\n")
