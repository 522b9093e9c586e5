"""Every switch that docs/serving/techniques.md names is one of `weft serve` or of vLLM."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.main import get_command

from weft.cli.main import app
from weft.serving.vllm.launch.engine import installed_engine

PAGE = Path(__file__).parents[2] / "docs" / "serving" / "techniques.md"
TECHNIQUES = (
    "Megatron-LM SARATHI FastGen NanoFlow Shift Mnemosyne FlexGen MARLIN ExpertWeave ScaleLLM "
    "DeepFlow TPI-LLM Ladder-Residual APEX"
)


def rows() -> list[list[str]]:
    lines = PAGE.read_text("utf-8").splitlines()
    return [line.strip("|").split("|") for line in lines if line.startswith("| ")][1:]


def flags(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", text))


def own() -> set[str]:
    serve = get_command(app).get_command(None, "serve")  # type: ignore[attr-defined]
    return {name for option in serve.params for name in option.opts + option.secondary_opts}


def test_every_technique_has_a_row_that_says_how_or_why_not() -> None:
    named = [row[0] for row in rows()]
    for technique in TECHNIQUES.split():
        assert sum(technique in name for name in named) == 1, technique
    assert all("`" in row[2] or "none" in row[2] for row in rows())


@pytest.mark.skipif(find_spec("vllm") is None, reason="no vLLM is installed")
def test_every_switch_is_there() -> None:
    known = own() | installed_engine().flags
    for technique, _, switch in rows():
        assert flags(switch) <= known, technique
