"""`weft decoders`, and `--decode` of the commands that ask a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("torch", reason="decoders need weft[local]")

from weft.cli.main import app
from weft.decoding.diffusion import catalogue
from weft.decoding.speculative.presets import NAMES, preset

FLOW = """\
name: one
models: {small: "local:no-such-model"}
nodes:
  a: {model: small, prompt: hello}
outputs: {a: "{{ a }}"}
"""


def weft(*arguments: str) -> tuple[int, str]:
    shown = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"}, prog_name="weft")
    return shown.exit_code, shown.output


def test_all_decoders_are_listed_with_what_they_are() -> None:
    code, output = weft("decoders")
    assert code == 0
    written_on, _, filled_in = output.partition("Of diffusion models:")
    for name in NAMES:
        assert name in written_on
    for name in catalogue.NAMES:
        assert name in filled_in
    code, output = weft("decoders", "--json")
    told = {each["name"]: each for each in json.loads(output)}
    assert list(told) == [*NAMES, *catalogue.NAMES]
    for name in NAMES:
        assert told[name]["kind"] == "autoregressive"
        assert told[name]["lossless"] == preset(name).lossless
        assert told[name]["options"] == list(preset(name).options)
    for name in catalogue.NAMES:
        assert told[name]["kind"] == "diffusion"
        assert told[name]["lossless"] == catalogue.preset(name).plain
        assert told[name]["options"] == list(catalogue.preset(name).options)


@pytest.mark.parametrize("command", ["run", "ask", "think"])
def test_a_misspelt_decoder_is_refused_before_anything_is_loaded(
    command: str, tmp_path: Path
) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(FLOW, "utf-8")
    asked = [str(file)] if command == "run" else ["hello"]
    code, output = weft(command, *asked, "--decode", "lokup")
    assert code != 0
    assert "no decoder 'lokup'" in output
    assert "did you mean 'lookup'" in output
    code, output = weft(command, *asked, "--decode", "treshold:0.9")
    assert code != 0
    assert "did you mean 'threshold'" in output


def test_a_server_is_not_asked_for_a_decoder() -> None:
    code, output = weft("ask", "hello", "--base-url", "http://127.0.0.1:9/v1", "--decode", "lookup")
    assert code == 2
    assert "weft serve" in " ".join(output.split())
