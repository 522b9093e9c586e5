"""The rows of EasySpec's evaluation, with all ranks in this process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from evals.engine.rows import Lookup, Row
from evals.speculative import easyspec
from evals.speculative.cases.prompt import Prompt
from tests.serving.local.conftest import tiny_path
from weft.core.values import Message
from weft.decoding.speculative.drafters.model.layer_parallel.shard import ShardLayout

__all__ = ["tiny_path"]


def test_drafts_are_timed_against_sequential_ones_and_change_no_text(
    tiny_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = ShardLayout(tiny_path, ranks=1, group=1, dtype="float32")
    few = {"sequential": one, "group_2": replace(one, group=2)}
    monkeypatch.setattr(easyspec, "layouts", lambda _path: few)
    monkeypatch.setattr(easyspec, "SHORT_LAYERS", 2)
    prompts = [Prompt(f"p{n}", (Message("user", text),)) for n, text in enumerate(["ab", "1 2"])]
    monkeypatch.setattr(easyspec, "_free", lambda _case, count: prompts[:count])
    timed = easyspec._time_rows(tiny_path, 3)
    figures = Lookup(Row(**row) for row in timed)
    assert figures("draft_of_5", "sequential", "draft_time_ratio") == 1.0
    assert (figures("draft_of_5", "group_2", "draft_time_ratio") or 0.0) > 0.0
    figures = Lookup(Row(**row) for row in easyspec._accepted_rows(tiny_path, 1, 9))
    for case in ("whole_self", "first_2_layers"):
        for system in few:
            assert figures(case, system, "identical_outputs") == 1.0
            assert (figures(case, system, "accepted_length") or 0.0) >= 1.0
    # exact drafts of five tokens, then of the two for which there is room
    assert figures("whole_self", "sequential", "accepted_length") == 4.5
