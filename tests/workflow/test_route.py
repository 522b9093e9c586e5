"""`use: route`: a choice among the models of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import weft
from weft.core.errors import BuildError, ModelUnavailable, SourceError
from weft.core.events import NodeLogged
from weft.planner.choice import LossRow, train
from weft.testing import FakeModel, Reply

FLOW = """
name: routed
inputs:
  topic: string
models:
  small: local:smollm2-135m-instruct
  large: {use: openai, model: big, base_url: "http://127.0.0.1:9/v1"}
  auto:
    use: route
    among:
      small: {loss: 0.5, latency: 1s, size: 0.135}
      large: {loss: 0.2, latency: 9s, price: {prompt: 1, completion: 2}}
%s
nodes:
  a: {model: auto, prompt: "Write about {{ topic }}."}
outputs:
  text: "{{ a }}"
"""


def flow(tmp_path: Path, more: str = "") -> weft.Flow:
    file = tmp_path / "routed.yaml"
    file.write_text(FLOW % more, "utf-8")
    return weft.load(file)


def run(made: weft.Flow, topic: str = "rain", **models: FakeModel) -> Any:
    lines: list[str] = []

    def listen(event: object) -> None:
        if isinstance(event, NodeLogged):
            lines.append(event.text)

    result = made.run_sync(topic=topic, models=models, listeners=[listen])
    return result, lines


def test_calls_go_to_the_best_model_and_the_log_says_so(tmp_path: Path) -> None:
    small, large = FakeModel(["small"]), FakeModel(["large words"])
    result, lines = run(flow(tmp_path), small=small, large=large)
    assert result.outputs == {"text": "large words"}
    assert len(lines) == 1
    assert lines[0].startswith("auto: large (")
    assert result.usage.money == pytest.approx((3 * 1 + 2 * 2) / 1e6)


def test_weights_and_failures_lead_elsewhere(tmp_path: Path) -> None:
    small, large = FakeModel(["small"]), FakeModel(["large"])
    made = flow(tmp_path, "    weights: {latency: 1}")
    assert run(made, small=small, large=large)[0].outputs == {"text": "small"}
    down = FakeModel([Reply("x", error=ModelUnavailable("gone"))])
    result, lines = run(flow(tmp_path), small=small, large=down)
    assert result.outputs == {"text": "small"}
    assert lines[0] == "auto: large failed: gone"


def test_a_predictor_is_read_from_beside_the_file(tmp_path: Path) -> None:
    rows = [
        LossRow(f"Write about {text} {n}.", model, 0.1 if model == best else 0.9)
        for n in range(20)
        for text, best in (("rain", "small"), ("sums", "large"))
        for model in ("small", "large")
    ]
    train(rows, dimensions=512).save(tmp_path / "choice.json")
    made = flow(tmp_path, "    predictor: ./choice.json")
    small, large = FakeModel(["small"]), FakeModel(["large"])
    for topic, best in (("rain", "small"), ("sums", "large")):
        assert run(made, topic, small=small, large=large)[0].outputs == {"text": best}


def test_the_file_says_the_same_when_it_is_written_again(tmp_path: Path) -> None:
    made = flow(tmp_path, "    weights: {latency: 1}")
    again = tmp_path / "again.yaml"
    again.write_text(made.to_yaml(), "utf-8")
    assert weft.load(again).document.models == made.document.models


def test_a_list_of_names_is_enough_and_python_says_the_same() -> None:
    made = weft.Flow(
        "routed",
        models={
            "a": FakeModel(["from a"]),
            "b": FakeModel(["from b"]),
            "auto": {"use": "route", "among": ["a", "b"]},
        },
    )
    made.output(text=made.model("auto", "Hello"))
    assert made.run_sync().outputs == {"text": "from a"}


MODELS = """
name: broken
models:
  small: local:smollm2-135m-instruct
  auto: {use: route, %s}
nodes:
  a: {model: auto, prompt: hi}
outputs: {x: "{{ a }}"}
"""


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        ("model: x", "has no `among`", "add `among:`"),
        ("among: []", "`among` is empty", "at least one"),
        ("among: [smal]", "no model called `smal`", "did you mean `small`?"),
        ("among: [auto]", "made of itself", "name other models"),
        ("among: [small], model: x", "`model` does not go with `use: route`", "`weights`"),
        ("among: [small], options: {a: 1}", "`options` does not go", "`among`"),
        ("among: {small: {los: 1}}", "unknown key `los`", "`loss`"),
        ("among: {small: {size: -1}}", "size", ""),
        ("among: [small], weights: {money: -1}", "money", ""),
        ("among: [small], predictor: ./no.json", "cannot read", ""),
        ("among: [small], predictor: ../no.json", "out of the workflow's folder", "beside"),
    ],
)
def test_a_broken_choice_is_told_at_its_place(
    tmp_path: Path, said: str, message: str, hint: str
) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(MODELS % said, "utf-8")
    with pytest.raises(SourceError) as raised:
        weft.load(file).check()
    assert raised.value.line == 5
    assert message in raised.value.message
    assert hint in (raised.value.hint or "")


@pytest.mark.parametrize("key", ["among: [a]", "weights: {money: 1}", "predictor: ./x.json"])
def test_only_a_choice_chooses(tmp_path: Path, key: str) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(f"name: x\nmodels:\n  a: {{use: local, model: m, {key}}}\n", "utf-8")
    with pytest.raises(SourceError, match="does not go with `use: local`"):
        weft.load(file)


def test_a_circle_of_choices_and_a_stranger_as_predictor(tmp_path: Path) -> None:
    models: dict[str, Any] = {
        "a": {"use": "route", "among": ["b"]},
        "b": {"use": "route", "among": ["a"]},
    }
    made = weft.Flow("circle", models=models)
    made.output(text=made.model("a", "Hello"))
    with pytest.raises(BuildError, match="made of itself"):
        made.check()
    train([LossRow("x", "other", 1.0)]).save(tmp_path / "choice.json")
    with pytest.raises(SourceError, match="knows none") as raised:
        flow(tmp_path, "    predictor: ./choice.json").check()
    assert raised.value.line == 13


def test_a_model_without_a_name_is_told(tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text("name: x\nmodels:\n  a: {use: local}\n", "utf-8")
    with pytest.raises(SourceError, match="has no `model`"):
        weft.load(file)
