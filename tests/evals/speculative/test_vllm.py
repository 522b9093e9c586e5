"""The comparison of vLLM's decoders, over models that only say what they took."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from evals.engine.rows import Lookup
from evals.planning.effort import Skipped
from evals.speculative import vllm
from evals.speculative.cases import AGENTS
from evals.speculative.rounds import Size
from weft.core.errors import ModelNotFound
from weft.core.ports import ModelEvent, ModelRequest, Prefilled
from weft.core.values import Completion, Speculated


class Server:
    """Writes the same eight tokens always; `kept` of each draft of three are right."""

    def __init__(self, log: list[str], name: str, kept: int | None) -> None:
        self.log, self.name, self.kept = log, name, kept

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        assert request.program is not None
        self.log.append(f"{self.name} {request.program.id}")
        yield Prefilled((1, 2))
        drafted = None
        if self.kept is not None:
            passes = 7 - self.kept
            drafted = Speculated("weft", 3 * passes, self.kept, passes, (passes,), (self.kept,))
        yield Completion("a", token_ids=(9, 8, 7, 6, 5, 4, 3, 2), speculation=drafted)


def test_every_prompt_goes_to_both_in_turns_and_the_figures_are_those_of_the_answers() -> None:
    log: list[str] = []
    models: list[Any] = [Server(log, "plain", None), Server(log, "drafting", 4)]
    plain, drafting = (vllm.Side(model, "salt") for model in models)
    rows = asyncio.run(vllm.compared("vllm weft", plain, drafting, Size(2, 16, back=False)))
    figures = Lookup(rows)
    for case in (*AGENTS, "agents", "agents again", "agents x8"):
        assert figures(case, "vllm weft", "identical_outputs") == 1.0, case
        assert figures(case, "vllm weft", "tokens_per_target_forward") == 2.0
        ratio = figures(case, "vllm weft", "wall_ratio")
        assert ratio is not None
        assert ratio > 0
    assert len(vllm.table(rows).splitlines()) == 2 + len(AGENTS) + 3
    assert figures("agents", "vllm plain", "tokens_per_target_forward") == 1.0
    alone = [line.split(" ", 1) for line in log if "agent_quoting-0" in line]
    assert [who for who, _ in alone[:2]] == ["drafting", "plain"]
    first = AGENTS[0]
    asked = [line for line in log[: log.index(f"plain {AGENTS[1]}-0")] if first in line]
    assert len(set(asked)) == len(asked)  # no server has seen a prompt before


def test_without_the_model_it_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModelNotFound(f"{name} is not here")

    monkeypatch.setattr(vllm, "locate", missing)
    with pytest.raises(Skipped, match="is not here"):
        vllm.rows(quick=True)
