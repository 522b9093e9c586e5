"""The command's frame: sections, what is skipped, tables, verdicts, the plot."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import ModuleType

import pytest

from evals.engine.rows import Row
from evals.planning import sections
from evals.planning.data import folder, load, load_lines
from evals.planning.effort import FULL, QUICK, Effort, Skipped
from evals.planning.orchestration.sweeps import SWEPT, per_token
from evals.planning.plot import draw
from evals.planning.report import table


def test_effort_chooses() -> None:
    assert (QUICK.of(1, 2), FULL.of(1, 2)) == (1, 2)


def test_data_is_found_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_DATA", str(tmp_path))
    with pytest.raises(Skipped, match="set WEFT_DATA"):
        folder("planner")
    (tmp_path / "planner").mkdir()
    with pytest.raises(Skipped, match="there is no file"):
        load("planner/a.json")
    (tmp_path / "planner" / "a.json").write_text('{"a": 1}')
    (tmp_path / "planner" / "b.json").write_text('{"a": 1}\n\n{"a": 2}\n')
    assert load("planner/a.json") == {"a": 1}
    assert load_lines("planner/b.json") == [{"a": 1}, {"a": 2}]


def test_a_section_that_lacks_something_says_so_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fine(effort: Effort) -> list[Row]:
        return [Row("a", "b", "quick", float(effort.quick), "")]

    async def lacking(_: Effort) -> list[Row]:
        raise Skipped("there is no model")

    def module(section: str) -> ModuleType:
        found = ModuleType(section)
        found.run = {"quality": lacking, "choice": fine}[section]  # type: ignore[attr-defined]
        return found

    monkeypatch.setattr(sections, "module", module)
    rows = asyncio.run(sections.rows_of(("quality", "choice"), QUICK))
    assert [row.metric for row in rows] == ["skipped: there is no model", "quick"]


def test_a_section_that_is_not_in_the_checkout_is_skipped() -> None:
    with pytest.raises(Skipped, match="no_such_section"):
        sections.module("no_such_section")


def _rows() -> list[Row]:
    rows = [
        Row("movie", "compiler", "tasks", 4, "tasks"),
        Row("movie", "compiler", "median_latency_s", 1.25, "s"),
        Row("movie", "compiler", "speedup_to_react_text", 3.5, "x react_text"),
        Row("all cases", "compiler", "speedup_to_llmcompiler_loop_least", 0.99, "x"),
        Row("stall", "compiler", "start_lag_ms", 0.0, "ms"),
        Row("quality", "local", "skipped: no weights", None, ""),
        Row(
            "streaming, fast model, pause of 40 tokens",
            "compiler",
            "speedup_to_llmcompiler_loop",
            1.1,
            "x",
        ),
    ]
    for case in SWEPT:
        named = per_token(case)
        rows += [Row(name, "compiler", "speedup_to_react_text", 2.0, "x") for name in named]
    return rows


def test_the_table_ends_with_verdicts() -> None:
    text = table(_rows())
    assert "1.250" in text
    assert "met     movie compiler speedup_to_react_text: 3.500 >= 3" in text
    assert "MISSED  all cases compiler speedup_to_llmcompiler_loop_least: 0.990 >= 1" in text
    assert "met     stall compiler start_lag_ms: 0.000 <= 5" in text
    assert "skipped: no weights" in text
    assert "parallelqa compiler" not in text.split("verdict")[-1]


def test_the_plot_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "planning.png"
    draw(_rows(), path)
    assert path.read_bytes().startswith(b"\x89PNG")
