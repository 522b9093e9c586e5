"""Commands that are printed work as they are printed, also where `--journal` names the journal."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.command_line import go_into
from tests.cli.command_line import typed as weft
from weft.cli.journal import run_reference

FLOW = """
name: bill
nodes: {sure: {ask: "Sure?", schema: boolean}, why: {ask: "Why?", after: sure}}
outputs: {why: "{{ sure }}: {{ why }}"}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go_into(tmp_path, monkeypatch, "own.sqlite")
    (tmp_path / "bill.yaml").write_text(FLOW)
    return tmp_path


def printed(text: str, command: str) -> list[str]:
    """The words after `weft` of a command that `text` shows."""
    found = re.search(rf"weft ({command} .*?)(`|   \(|$)", text, re.MULTILINE)
    assert found is not None, text
    return shlex.split(found[1])


def test_where_the_run_is_goes_with_its_name() -> None:
    assert run_reference("one", None) == "one"
    assert run_reference("one", "my runs.sqlite") == "one --journal 'my runs.sqlite'"
    assert "\x1b" not in run_reference("o\x1b[2Jne", "j\x1b[2J")


def test_a_servers_password_is_not_printed() -> None:
    said = run_reference("one", "postgresql://me:secret@there/runs")
    assert "secret" not in said
    assert said == "one --journal postgresql://..."


def test_a_run_is_answered_and_resumed_as_it_was_said() -> None:
    place = ("--journal", "my runs.sqlite")
    ran = weft("run", "bill.yaml", "--run-id", "one", *place)
    assert ran.exit_code == 4
    words = printed(ran.stderr, "answer")
    kept = weft(*[word if word != "VALUE" else "y" for word in words])
    assert kept.exit_code == 0, kept.output
    waits = weft(*printed(kept.stdout, "resume"))
    assert waits.exit_code == 4, waits.output  # it goes on, and asks the second question
    shown = weft("runs", "show", "one", *place).stdout
    words = printed(shown, "answer")
    assert weft(*[word if word != "VALUE" else "so" for word in words]).exit_code == 0
    done = weft(*printed(waits.stderr, "resume"))
    assert done.exit_code == 0, done.output
    assert "true: so" in done.stdout


def test_an_answer_that_does_not_fit_is_given_again_as_it_was_said() -> None:
    refused = weft("run", "bill.yaml", "--answer", "sure=maybe", "--journal", "other.sqlite")
    assert refused.exit_code == 2
    words = printed(refused.stderr, "resume")
    again_given = weft(*[word.replace("VALUE", "y") for word in words], "--answer", "why=so")
    assert again_given.exit_code == 0, again_given.output
