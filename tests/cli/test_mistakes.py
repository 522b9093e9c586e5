"""What the command line says about mistakes: how many there are, and what to type instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import go_into, typed

THREE = """name: three
inputs: {photo: string}
nodes:
  a: {valeu: 1}
  b: {value: "{{ nothing }}"}
  c: {value: "{{ neither }}"}
outputs: {o: "{{ a }}"}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go_into(tmp_path, monkeypatch)
    return tmp_path


def test_run_prints_the_first_mistake_and_how_many_there_are(folder: Path) -> None:
    (folder / "three flows.yaml").write_text(THREE)
    checked, ran = typed("check", "three flows.yaml"), typed("run", "three flows.yaml")
    assert (checked.exit_code, ran.exit_code) == (2, 2)
    count = checked.output.count("error: ")
    assert count == 3
    assert ran.output.count("error: ") == 1
    first = checked.output[: checked.output.index("error: ", 1)]
    assert ran.output == f"{first}and {count - 1} more: weft check 'three flows.yaml'\n"


def test_run_and_graph_say_nothing_more_of_a_single_mistake(folder: Path) -> None:
    (folder / "one.yaml").write_text(THREE.replace("nothing", "photo").replace("neither", "photo"))
    ran = typed("run", "one.yaml")
    assert (ran.exit_code, " more:" in ran.output) == (2, False)
    assert ran.output == typed("check", "one.yaml").output


def test_a_command_that_draws_names_the_check_too(folder: Path) -> None:
    (folder / "three.yaml").write_text(THREE)
    drawn = typed("graph", "three.yaml")
    assert "and 2 more: weft check" in drawn.output


@pytest.mark.parametrize("command", ["ask", "think"])
@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        ("http://127.0.0.1:9/v1", "--model NAME --base-url http://127.0.0.1:9/v1"),
        ("qwen3-8b", "--model qwen3-8b --base-url URL"),
    ],
)
def test_a_model_behind_an_endpoint_is_named_with_its_address(
    command: str, model: str, remedy: str
) -> None:
    said = typed(command, "hi", "--model", model)
    assert said.exit_code == 2
    assert remedy in " ".join(said.output.replace("│", " ").split())


def test_a_missing_input_is_given_by_an_option(folder: Path) -> None:
    text = "name: f\ninputs: {photo: string}\nnodes:\n  a: {value: '{{ photo }}'}\n"
    text += "outputs: {a: '{{ a }}'}\n"
    (folder / "flow.yaml").write_text(text)
    said = typed("run", "flow.yaml")
    assert said.exit_code == 2
    assert "-i photo=..." in said.output
    assert typed("run", "flow.yaml", "-i", "photo=cat.png", "-q").exit_code == 0
