"""What a study says of a workflow or metric that is broken, and of knobs with many good options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.optimisation.studies import flow, named, planted, rows
from weft.core.errors import BuildError, InputError, ModelError
from weft.optimisation.optimise import read_study
from weft.optimisation.preview import preview_study
from weft.testing import FakeModel

_PLAIN = """\
name: yes_no
inputs: {question: string}
models: {small: {use: openai, model: none, base_url: "http://127.0.0.1:9/v1"}}
nodes: {answer: {model: small, prompt: "{{ question }}", temperature: 0}}
outputs: {answer: "{{ answer }}"}
"""


def _study(text: str, model: FakeModel, **settings: Any) -> Any:
    given: dict[str, Any] = {"budget": 3_000, "metric": "exact", **settings}
    metric = given.pop("metric")
    return weft.optimise_sync(weft.loads(text), rows(240), metric, models=named(model), **given)


def test_many_equally_good_options_are_no_reason_to_find_nothing() -> None:
    options = [f"Way {n}: {{{{ question }}}}" for n in range(12)]
    knobs = json.dumps({"knobs": {"answer": {"prompt": options}}})

    def answer(request: Any) -> str:
        text = request.messages[-1].content
        number = int(text.rpartition("q")[2])
        return f"a{number}" if text.startswith("Way") or number % 10 < 7 else "no"

    result = _study(f"{_PLAIN}optimise: {knobs}\n", FakeModel(answer))
    assert result.verdict.kind == "improved", result.verdict.why


def test_a_metric_that_never_scores_is_said_before_anything_is_searched() -> None:
    def broken(outputs: Any, expected: Any) -> float:
        raise KeyError(expected)

    with pytest.raises(InputError, match="metric gives no score on all of the first"):
        weft.optimise_sync(flow(), rows(80), broken, models=named(planted()), budget=400)


def test_a_workflow_that_always_fails_is_said_with_the_reason() -> None:
    def refuse(_: Any) -> str:
        raise ModelError("the server is asleep")

    with pytest.raises(InputError, match=r"fails on all of the first .* asleep"):
        weft.optimise_sync(flow(), rows(80), "exact", models=named(FakeModel(refuse)), budget=400)


def test_where_there_is_nothing_to_try_no_model_is_called() -> None:
    model = planted()
    with pytest.raises(InputError, match="nothing to try"):
        _study(_PLAIN, model)
    assert not model.requests


def test_a_preview_checks_what_the_study_would_refuse() -> None:
    with pytest.raises(BuildError, match="bootstrp"):
        preview_study(flow(), rows(80), "exact", proposers=["bootstrp"])
    with pytest.raises(InputError, match="speed"):
        preview_study(flow(), rows(80), "exact", goal="speed")
    with pytest.raises(InputError, match="qualty"):
        preview_study(flow(), rows(80), "exact", keep={"qualty": 0.1})


def test_the_last_study_is_found_behind_a_later_run(tmp_path: Path) -> None:
    place = tmp_path / "journal.db"
    found = weft.optimise_sync(
        flow(), rows(80), "exact", models=named(planted()), budget=200, journal=place
    )
    other = "name: other\nnodes: {one: {value: 1}}\noutputs: {one: '{{ one }}'}\n"
    weft.loads(other).run_sync(journal=place)
    assert read_study(journal=place).run == found.run


@pytest.mark.parametrize(
    ("part", "meant"),
    [
        ("knobs: {answer: {temprature: [0.7]}}", "temperature"),
        ("knobs: {answer: {demonstrations: {mx: 2}}}", "max"),
        ("knobs: {answer: {choices: {one: {cst: 1}}}}", "cost"),
        ("proposer: {modl: small}", "model"),
        ("budgt: 5", "budget"),
    ],
)
def test_a_misspelt_key_of_optimise_is_told_with_the_one_that_was_meant(
    part: str, meant: str
) -> None:
    with pytest.raises(BuildError) as caught:
        weft.loads(f"{_PLAIN}optimise: {{{part}}}\n")
    assert caught.value.hint == f"did you mean `{meant}`?"


def test_a_misspelt_argument_is_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(BuildError, match="propsers") as caught:
        weft.optimise_sync(flow(), rows(80), "exact", propsers=["bootstrap"])
    assert "proposers" in str(caught.value.hint)
