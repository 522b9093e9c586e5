"""Workflows that run themselves, directly and through others, with a bound."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.errors import BuildError, SourceError
from weft.testing import FakeClock, FakeModel, MemoryJournal

SORT = """\
name: sort
inputs: {items: [integer]}
nodes:
  done:
    branch: "{{ items | length < 2 }}"
    cases:
      true: {value: "{{ items }}"}
      false:
        nodes:
          parts: {call: "./parts.py:split", with: {items: "{{ items }}"}}
          low: {workflow: ./sort.yaml, with: {items: "{{ parts.low }}"}, max_depth: 30}
          high: {workflow: ./sort.yaml, with: {items: "{{ parts.high }}"}, max_depth: 30}
        result: "{{ low.items + [parts.pivot] + high.items }}"
outputs: {items: "{{ done }}"}
"""
SPLIT = """\
def split(items: list[int]) -> dict[str, object]:
    pivot, *rest = items
    low, high = [n for n in rest if n < pivot], [n for n in rest if n >= pivot]
    return {"low": low, "pivot": pivot, "high": high}
"""
SUMMARY = """\
name: summary
inputs: {texts: [string]}
models: {small: local:smollm2-135m-instruct}
nodes:
  half: {value: "{{ (texts | length) // 2 }}"}
  text:
    branch: "{{ texts | length }}"
    cases:
      "1": {model: small, prompt: "{{ texts[0] }}"}
      default:
        nodes:
          left: {workflow: ./summary.yaml, with: {texts: "{{ texts[:half] }}"}, max_depth: 9}
          right: {workflow: ./summary.yaml, with: {texts: "{{ texts[half:] }}"}, max_depth: 9}
          both: {model: small, prompt: "{{ left.text }}+{{ right.text }}"}
        result: "{{ both }}"
outputs: {text: "{{ text }}"}
"""


def sorting(folder: Path, text: str = SORT) -> weft.Flow:
    (folder / "parts.py").write_text(SPLIT)
    (folder / "sort.yaml").write_text(text)
    return weft.load(folder / "sort.yaml")


def down(max_depth: int = 5, **options: Any) -> weft.Flow:
    """Counts down to zero, one level for each number."""
    flow = weft.Flow("down")
    n = flow.input("n", int)

    def again() -> Any:
        below = flow.workflow(flow, n=n - 1, max_depth=max_depth, **options)
        return flow.value(below.depth + 1)

    flow.output(depth=flow.branch(n > 0, {True: again, False: 0}, name="at"))
    return flow


def test_divide_and_conquer_from_a_file(tmp_path: Path) -> None:
    flow = sorting(tmp_path)
    flow.check()
    items = [5, 3, 9, 1, 5, 7, 2, 8, 0, 6]
    assert flow.run_sync(items=items).outputs == {"items": sorted(items)}
    assert "at most 30 deep" in flow.mermaid()


def test_a_flow_that_runs_itself() -> None:
    flow = down()
    flow.check()
    assert flow.run_sync(n=0).outputs == {"depth": 0}
    assert flow.run_sync(n=5).outputs == {"depth": 5}


def test_a_flow_may_go_on_growing_after_it_ran() -> None:
    flow = down()
    assert flow.run_sync(n=2).status == "succeeded"
    flow.output(twice=flow.value("{{ at * 2 }}"))
    assert flow.run_sync(n=2).outputs == {"depth": 2, "twice": 4}


def test_the_bound_is_a_typed_error_that_names_node_and_depth() -> None:
    result = down().run_sync(n=6)
    assert result.status == "failed"
    failures = {n: o.failure for n, o in result.outcomes.items() if o.failure is not None}
    limits = {n: f for n, f in failures.items() if f.error == "RecursionLimit"}
    (node,) = limits
    assert node.count("below") == 6
    assert "`down` would run 6 levels deep inside itself, and may run 5" in limits[node].message
    assert "default" in str(limits[node].hint)


def test_a_default_and_a_fallback_catch_the_bound() -> None:
    assert down(default={"depth": 100}).run_sync(n=9).outputs == {"depth": 106}
    flow = weft.Flow("down")
    n = flow.input("n", int)

    def again() -> Any:
        instead = flow.value({"depth": 50})
        below = flow.workflow(flow, n=n - 1, max_depth=3, fallback=instead)
        return flow.value(below.depth + 1)

    flow.output(depth=flow.branch(n > 0, {True: again, False: 0}))
    assert flow.run_sync(n=9).outputs == {"depth": 54}


@pytest.mark.parametrize("n", [0, 1, 6, 7])
def test_flows_that_run_one_another(n: int) -> None:
    even, odd = weft.Flow("even"), weft.Flow("odd")
    for flow, other, at_zero in ((even, odd, True), (odd, even, False)):
        number = flow.input("n", int)

        def ask_other(flow: Any = flow, other: Any = other, number: Any = number) -> Any:
            return flow.workflow(other, n=number - 1, max_depth=10, name="other").answer

        flow.output(answer=flow.branch(number == 0, {True: at_zero, False: ask_other}))
    even.check()
    assert even.run_sync(n=n).outputs == {"answer": n % 2 == 0}
    assert odd.run_sync(n=n).outputs == {"answer": n % 2 == 1}


def test_files_that_run_one_another(tmp_path: Path) -> None:
    for name, other, at_zero, bound in (
        ("even", "odd", "true", ""),
        ("odd", "even", "false", ", max_depth: 4"),
    ):
        call = f'{{workflow: ./{other}.yaml, with: {{n: "{{{{ n - 1 }}}}"}}{bound}}}'
        (tmp_path / f"{name}.yaml").write_text(
            f"name: {name}\ninputs: {{n: integer}}\nnodes:\n  at:\n    branch: '{{{{ n == 0 }}}}'\n"
            f"    cases:\n      true: {{value: {{answer: {at_zero}}}}}\n      false: {call}\n"
            "outputs: {answer: '{{ at.answer }}'}\n"
        )
    flow = weft.load(tmp_path / "even.yaml")
    flow.check()
    assert flow.run_sync(n=7).outputs == {"answer": False}
    assert flow.run_sync(n=8).outputs == {"answer": True}
    assert flow.run_sync(n=11).status == "failed", "even runs 5 levels deep inside itself"


def test_without_a_bound_the_circle_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"runs itself without a bound.*max_depth") as caught:
        sorting(tmp_path, SORT.replace(", max_depth: 30", "", 1))
    assert (caught.value.line, caught.value.node) == (11, "done/low")
    flow, other = weft.Flow("a"), weft.Flow("b")
    other.output(x=other.workflow(flow, max_depth=2))
    flow.output(x=flow.value(1))
    flow.check()
    with pytest.raises(BuildError, match="greater than or equal to 1"):
        flow.workflow(flow, max_depth=0)


def test_types_are_known_through_recursion(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="itemz"):
        sorting(tmp_path, SORT.replace("low.items", "low.itemz")).check()
    with pytest.raises(SourceError, match="cannot take this"):
        sorting(tmp_path, SORT.replace('"{{ parts.low }}"', "soon")).check()
    with pytest.raises(SourceError, match="needs `items`"):
        sorting(tmp_path, SORT.replace(', with: {items: "{{ parts.low }}"}', "")).check()


@pytest.mark.parametrize("at_s", [0.5, 1.5, 2.5])
def test_a_run_is_resumed_in_the_middle_of_depth_3(tmp_path: Path, at_s: float) -> None:
    (tmp_path / "summary.yaml").write_text(SUMMARY)
    flow = weft.load(tmp_path / "summary.yaml")
    clock = FakeClock()
    journal = MemoryJournal(clock)
    asked: list[str] = []

    def answer(request: Any) -> Any:
        asked.append(request.messages[-1].content)
        return weft.testing.Reply(f"({asked[-1]})", first_token_s=1.0, per_token_s=0.0)

    settings: dict[str, Any] = {
        "models": {"small": FakeModel(answer)},
        "clock": clock,
        "journal": journal,
    }

    async def left() -> Any:
        run = flow.start({"texts": list("abcdefgh")}, **settings)
        asyncio.get_running_loop().call_later(at_s, run.pause, "left")
        return await run.wait()

    assert clock.run(left()).status == "cancelled"
    done = [text for text in asked if len(text) < 4 ** int(at_s + 0.5) and at_s > 1]

    async def resumed() -> Any:
        return await flow.resume("last", **settings).wait()

    before = len(asked)
    result = clock.run(resumed())
    assert result.outputs == {"text": "((((a)+(b))+((c)+(d)))+(((e)+(f))+((g)+(h))))"}
    assert not set(asked[before:]) & set(asked[: 8 if done else 0]), "finished leaves stay finished"
    assert len(asked) - before == {0.5: 15, 1.5: 7, 2.5: 3}[at_s]


def test_identical_runs_are_replayed(tmp_path: Path) -> None:
    flow = sorting(tmp_path)
    clock = FakeClock()
    journal = MemoryJournal(clock)
    run = clock.run(flow.run(items=[3, 1, 2], journal=journal, clock=clock))
    assert run.status == "succeeded"
    assert weft.simulate("last", journal=journal, workers=1).runs


def test_budgets_and_node_limits_count_all_levels() -> None:
    limited = down(100).run_sync(n=50, max_nodes=60)
    assert limited.status == "failed"
    assert any(o.failure and o.failure.error == "NodeLimit" for o in limited.outcomes.values())


def test_a_run_is_cancelled_at_any_depth() -> None:
    flow = weft.Flow("deep")
    n = flow.input("n", int)
    clock = FakeClock()
    reached: list[int] = []

    async def wait(n: int) -> int:
        reached.append(n)
        await asyncio.sleep(1)
        return n

    waited = flow.call(wait, n)
    flow.output(n=flow.workflow(flow, n=waited + 1, max_depth=500).n)

    async def cancelled() -> Any:
        run = flow.start({"n": 0}, clock=clock)
        asyncio.get_running_loop().call_later(9.5, run.cancel)
        return await run.wait()

    assert clock.run(cancelled()).status == "cancelled"
    assert reached == list(range(10))
