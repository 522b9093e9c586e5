"""The evaluation itself, on a model that is made here."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

from evals.engine.rows import Row
from evals.local_batching import (
    Effort,
    draw,
    fits,
    measure,
    parses,
    prompts,
    schema_rows,
    table,
    timing_rows,
)
from tests.serving.local.playback import EXACT
from weft.serving.local import LocalModel


async def rows_of(path: Path) -> list[Row]:
    async with aclosing(LocalModel(path, EXACT)) as model:
        timings = timing_rows(await measure(model, Effort(rounds=3, tokens=4, schemas=6)))
        return timings + await schema_rows(model, 6)


def test_rows_count_what_happened(tiny_path: Path, tmp_path: Path) -> None:
    rows = asyncio.run(rows_of(tiny_path))
    value = {(row.system, row.metric): row.value for row in rows}
    assert value["sequential", "tokens"] == value["batched", "tokens"] == 32
    assert value["sequential", "forwards"] == 32
    assert 4 <= value["batched", "forwards"] < 16
    assert value["constrained", "asked"] == 6
    assert value["constrained", "parsed"] == value["constrained", "valid"]
    assert value["constrained", "answered"] + value["constrained", "cut"] == 6
    assert {row.metric for row in rows if row.system == "batched"} >= {
        "median_s",
        "tokens_per_s",
        "forwards",
        "ratio",
    }
    assert len(table(rows).splitlines()) == len(rows)
    draw(rows, tmp_path / "plot.svg")
    assert "forward passes" in (tmp_path / "plot.svg").read_text("utf-8")


def test_no_prompt_is_asked_twice() -> None:
    asked = [text for s in ("sequential", "batched") for n in range(9) for text in prompts(s, n)]
    assert len(set(asked)) == len(asked)


def test_only_json_that_fits_is_valid() -> None:
    assert parses("[1]")
    assert not parses("[1")
    assert fits("3", {"type": "integer"})
    assert not fits('"3"', {"type": "integer"})
