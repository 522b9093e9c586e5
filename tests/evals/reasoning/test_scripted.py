"""The section `scripted`: the runtime finds what the symbolic searches find."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("transformers", reason="the compact tokenizer needs weft[local]")

from evals.engine.rows import Lookup
from evals.reasoning import scripted
from evals.reasoning.countdown.measuring import rows_of, solve_all
from evals.reasoning.countdown.problem import Problem, Range, problems
from evals.reasoning.countdown.scripted_model import SymbolicModel
from evals.reasoning.countdown.search import Beams
from evals.reasoning.countdown.trace import Node
from weft.core.errors import ModelRequestError
from weft.core.ports import ModelRequest, complete

MODELS = [
    SymbolicModel("apr", Beams(3, 5)),
    SymbolicModel("apr", Beams(4, 4), seed=7),
    SymbolicModel("sos", Beams(4, 4)),
]
DRAWN = list(problems(5, 6, Range(4)))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.model)
def test_the_runtime_finds_what_the_search_finds(model: SymbolicModel) -> None:
    solved = asyncio.run(solve_all(model, DRAWN, {}))
    assert [one.steps for one in solved] == [scripted.searched(model, p) for p in DRAWN]
    assert {one.counts.forks > 0 for one in solved} == {model.kind == "apr"}


def test_rows_say_accuracy_and_tokens() -> None:
    model = MODELS[0]
    solved = asyncio.run(solve_all(model, DRAWN, {}))
    rows = rows_of("case", "apr", solved) + scripted.against_search("apr", model, solved)
    figures = Lookup(rows)
    assert figures("case", "apr", "accuracy") == figures(scripted.CASE, "apr", "accuracy_alone")
    assert figures(scripted.CASE, "apr", "equal") == 100.0
    total = figures("case", "apr", "total_tokens") or 0.0
    assert (figures("case", "apr", "critical_path_tokens") or 0.0) < total


def test_a_prompt_that_the_search_does_not_come_to_is_refused() -> None:
    """So a runtime that joins in another way cannot pass unnoticed."""
    model = MODELS[0]
    opening = Node.root(Problem((93, 28, 54, 2), 22)).opening
    asked = model.tokenizer(f"{opening}<Sub Searches>\n").input_ids

    async def ask() -> None:
        await complete(model, ModelRequest(prompt_token_ids=tuple(asked)))

    with pytest.raises(ModelRequestError, match="does not come to"):
        asyncio.run(ask())


def test_a_question_that_is_no_trace_is_not_solved(capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = asyncio.run(solve_all(MODELS[0], [Problem((), 3)], {}))
    assert not one.right
    assert "no search starts" in capsys.readouterr().err
