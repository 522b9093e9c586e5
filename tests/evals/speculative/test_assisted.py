"""transformers' assisted generation on a tiny model: the same text, counted at the model's door."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the decoders need weft[local]")

from evals.engine.rows import Lookup, Row
from evals.speculative import assisted
from evals.speculative.cases import CASES
from evals.speculative.cases.prompt import Prompt, conversation


@pytest.fixture
def tiny(tiny_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = conversation("the quick brown fox jumps over the quick brown")
    for case in ("agent_quoting", "agent_edits"):
        monkeypatch.setitem(CASES, case, lambda _: [Prompt("a", turns)])
    monkeypatch.setattr(assisted, "locate", lambda _: tiny_path)
    monkeypatch.setattr(assisted, "_LAYERS", 1)


@pytest.mark.usefixtures("tiny")
def test_weft_and_transformers_write_the_same_plainly_and_assisted() -> None:
    figures = Lookup([Row(**row) for row in assisted.rows(quick=True)])
    for case in ("agent_quoting", "agent_edits"):
        plain = figures(case, "transformers_plain", "tokens_per_target_forward")
        assert plain == 1.0
        for system in ("weft_plain", "transformers_prompt_lookup", "transformers_assistant"):
            assert figures(case, system, "identical_outputs") == 1.0
            passes = figures(case, system, "tokens_per_target_forward")
            assert passes is not None
            assert passes >= 1.0
