"""A missing output names the node that failed first, and has its error as the cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

import weft
from weft.errors import CassetteMiss, NodeFailed, ToolRaised
from weft.testing import CassetteModel, FakeModel

BRIEF = """
name: brief
inputs: {topics: [string]}
models: {small: {use: openai, model: m, base_url: "http://127.0.0.1:1/v1"}}
nodes:
  notes:
    map: "{{ topics }}"
    as: topic
    do: {model: small, prompt: "One sentence about {{ topic }}."}
  joined: {value: "{{ notes | join(' ') }}"}
  brief: {value: "{{ joined }}!"}
outputs: {brief: "{{ brief }}", other: "{{ topics | length }}"}
"""


def test_a_request_that_a_cassette_lacks_is_named_and_shown(tmp_path: Path) -> None:
    recorder = CassetteModel(tmp_path / "c.json", lambda: FakeModel(["Tea."]), record="all")
    flow = weft.loads(BRIEF)
    assert flow.run_sync(topics=["tea"], models={"small": recorder})["brief"] == "Tea.!"
    recorder.save()
    model = CassetteModel(tmp_path / "c.json")
    result = flow.run_sync(topics=["salt"], models={"small": model})
    assert result["other"] == 1
    with pytest.raises(KeyError, match=r"notes\[0\] failed: CassetteMiss") as caught:
        result["brief"]
    assert isinstance(caught.value.__cause__, CassetteMiss)
    assert '-   "content": "One sentence about tea.' in str(caught.value.__cause__)
    assert '+   "content": "One sentence about salt.' in str(caught.value.__cause__)


def broken(n: int) -> int:
    raise ZeroDivisionError("no tea")


def test_the_cause_leads_to_what_the_function_raised() -> None:
    flow = weft.Flow("f")
    flow.output(out=flow.call(str, flow.call(abs, flow.call(broken, 1))))
    with pytest.raises(KeyError, match=r"failed: ToolRaised: .*no tea") as caught:
        flow.run_sync()["out"]
    assert isinstance(caught.value.__cause__, ToolRaised)
    assert isinstance(caught.value.__cause__.__cause__, ZeroDivisionError)


def test_a_node_left_out_is_no_failure() -> None:
    text = "name: f\nnodes:\n  a: {value: 1, when: '{{ 1 > 2 }}'}\noutputs: {out: '{{ a }}'}"
    with pytest.raises(KeyError, match="was left out") as caught:
        weft.loads(text).run_sync()["out"]
    assert caught.value.__cause__ is None


class Out(BaseModel):
    text: str


def test_typed_outputs_name_it_too() -> None:
    flow = weft.Flow("f", outputs=Out)
    flow.output(text=flow.call(str, flow.call(broken, 1)))
    with pytest.raises(NodeFailed, match="no tea") as caught:
        flow.run_sync().outputs.text  # noqa: B018
    assert isinstance(caught.value.__cause__, ToolRaised)
