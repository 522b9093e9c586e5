from __future__ import annotations

import asyncio
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("torch") is None:
    pytest.skip("needs the `local` extra", allow_module_level=True)

from evals.engine.rows import Lookup
from evals.reasoning.hogwild import SYSTEMS, attention_rows, compare, table, writing_rows
from tests.serving.local import tiny
from tests.serving.local.playback import EXACT
from weft.serving.local import LocalModel


def test_all_systems_write_as_many_tokens_and_only_groups_share_passes(tmp_path: Path) -> None:
    async def main() -> None:
        async with aclosing(LocalModel(tiny.make(tmp_path), EXACT)) as model:
            rows = writing_rows(2, await compare(model, 2, 10, 2))
        figures = Lookup(rows)
        for system in SYSTEMS:
            assert figures("workers_2", system, "tokens") == 20
            per_forward = figures("workers_2", system, "tokens_per_forward") or 0.0
            assert per_forward <= 1 if system == "sequential" else 1.5 < per_forward <= 2
        assert figures("workers_2", "sequential", "ratio") == 1
        assert len(table(rows).splitlines()) == 1 + 2 * len(SYSTEMS) + 2

    asyncio.run(main())


def test_the_two_ways_to_attend_are_one() -> None:
    rows = attention_rows(rounds=1, prompt=20, block=7)
    errors = [row.value for row in rows if row.metric == "error"]
    assert len(errors) == 2
    assert all(error is not None and error < 1e-6 for error in errors)
    assert all(row.value and row.value > 0 for row in rows)
