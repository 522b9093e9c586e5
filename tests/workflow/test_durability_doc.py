"""`docs/durability.md`: its examples run, and its commands are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

import weft
from tests.workflow.case import HEAD, loads
from tests.workflow.history.recorded_runs import House
from weft.cli.main import app
from weft.pytest_plugin import Replaying
from weft.workflow.history.cassette_file import write_cassette

PAGE = Path(__file__).parents[2] / "docs" / "durability.md"
TEXT = re.sub(r"<!--.*?-->", "", PAGE.read_text("utf-8"), flags=re.DOTALL)
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.DOTALL)


def block(kind: str, holding: str) -> str:
    (found,) = [text for name, text in BLOCKS if name == kind and holding in text]
    return str(found)


def test_the_program_in_python() -> None:
    exec(compile(block("python", "flow.resume"), "durability.md", "exec"), {})


def test_the_test_with_a_cassette(tmp_path: Path, weft_replay: Replaying) -> None:
    house = House(lambda _: "Tea is old.")
    flow = loads("  brief: {model: small, prompt: x}", 'brief: "{{ brief }}"')
    house.run(flow)
    write_cassette(house.story(), tmp_path / "brief.cassette")
    names: dict[str, Any] = {}
    exec(compile(block("python", "weft_replay"), "durability.md", "exec"), names)

    def here(cassette: str, _: str) -> Any:
        return weft_replay(tmp_path / cassette, flow)

    names["test_the_brief"](here)


def test_the_setting_in_a_file() -> None:
    flow = weft.loads(
        HEAD + block("yaml", "durability") + "nodes: {a: {value: 1}}\noutputs: {a: '{{ a }}'}"
    )
    assert flow.document.run.durability == "async"


def test_the_commands_are_there() -> None:
    commands = set(re.findall(r"weft ([a-z]+)", TEXT)) & set(get_command(app).commands)  # type: ignore[attr-defined]
    assert {"run", "runs", "resume", "replay", "diff", "answer", "gateway"} <= commands
    helps = "".join(
        CliRunner().invoke(app, [*words.split(), "--help"]).output
        for words in (*commands, "runs show", "runs prune", "runs export", "runs import")
    )
    for option in set(re.findall(r"--[a-z][a-z-]+", TEXT)):
        assert option in helps, option
