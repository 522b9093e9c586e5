"""`weft replay` and `weft diff` where the workflow or the run is not what it seems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import go_into
from tests.cli.command_line import typed as weft

MODEL = "models: {small: {use: openai, model: m, base_url: 'http://127.0.0.1:9/v1'}}"
FLOW = f"""
name: notes
{MODEL}
nodes:
  a: {{ask: "Which?"}}
  b: {{model: small, prompt: "On {{{{ a }}}}", default: nothing}}
outputs: {{b: "{{{{ b }}}}"}}
"""
OTHER = 'name: other\nnodes: {a: {ask: "Which?"}}\noutputs: {a: "{{ a }}"}\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go_into(tmp_path, monkeypatch)
    (tmp_path / "notes.yaml").write_text(FLOW)
    (tmp_path / "other.yaml").write_text(OTHER)
    ran = weft("run", "notes.yaml", "--answer", "a=tea", "--run-id", "one")
    assert ran.exit_code == 0, ran.output
    return tmp_path


def runs() -> list[str]:
    listed: list[dict[str, Any]] = json.loads(weft("runs", "--json").stdout)
    return [run["run"] for run in listed]


def test_another_workflow_is_told_before_what_differs() -> None:
    same = weft("replay", "one")
    assert (same.exit_code, same.stderr) == (0, ""), same.stdout
    other = weft("replay", "one", "--file", "other.yaml")
    assert other.exit_code == 1
    assert other.stderr == "warning: this is the workflow other; the run is one of notes\n"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--answer", "a=salt"), "unless there is --from"),
        (("--from", "b", "--strict"), "with --from calls are made live"),
        (("--confirm", "b=repeat"), "unless there is --from"),
        (("--from", "b", "--confirm", "b=done"), "expected NODE=repeat"),
    ],
)
def test_options_that_would_do_nothing_are_refused(options: tuple[str, ...], told: str) -> None:
    refused = weft("replay", "one", *options)
    assert refused.exit_code == 2
    assert told in refused.stderr
    assert runs() == ["one"]


@pytest.mark.parametrize("command", ["replay one --from b", "resume two --accept-changes"])
def test_models_are_checked_before_anything_runs(folder: Path, command: str) -> None:
    assert weft("run", "notes.yaml", "--run-id", "two").exit_code == 4
    (folder / "notes.yaml").write_text(FLOW.replace("use: openai", "use: opnai"))
    refused = weft(*command.split())
    assert refused.exit_code == 2
    assert "no kind of model 'opnai'" in refused.stderr
    assert sorted(runs()) == ["one", "two"], "no run was begun"
    shown = json.loads(weft("runs", "show", "two", "--json").stdout)
    assert (shown["standing"], shown["parts"]) == ("asking", 1)


def test_a_run_that_has_not_ended_is_not_so_many_times_as_long() -> None:
    weft("run", "notes.yaml", "--answer", "a=salt", "--run-id", "two")
    weft("run", "other.yaml", "--run-id", "open")
    assert "x)" in wall_times("one", "two")
    for pair in (("one", "open"), ("open", "one")):
        assert "x)" not in wall_times(*pair)


def wall_times(*pair: str) -> str:
    shown = weft("diff", *pair).stdout
    return next(line for line in shown.splitlines() if line.startswith("wall time"))


PAYS = """
name: pays
tools: {pay: ./shop.py:pay}
nodes:
  total: {value: 3}
  paid: {tool: pay, with: {amount: "{{ total }}"}}
  said: {value: "paid: {{ paid }}"}
outputs: {said: "{{ said }}"}
"""
SHOP = """
from pathlib import Path
import weft

@weft.tool(effect="once")
def pay(amount: int) -> str:
    with Path("ledger").open("a") as ledger:
        ledger.write(f"{amount}\\n")
    return "receipt"
"""


def test_what_must_not_be_repeated_is_not_repeated_live_unasked(folder: Path) -> None:
    (folder / "pays.yaml").write_text(PAYS)
    (folder / "shop.py").write_text(SHOP)
    assert weft("run", "pays.yaml", "--run-id", "bought").exit_code == 0
    refused = weft("replay", "bought", "--from", "total")
    assert refused.exit_code == 2, refused.output
    assert "paid would make a call again that must not be repeated" in refused.stderr
    assert "--confirm paid=repeat" in refused.stderr
    assert weft("replay", "bought", "--from", "said").exit_code == 0
    assert (folder / "ledger").read_text() == "3\n"
    again = weft("replay", "bought", "--from", "total", "--confirm", "pa*=repeat")
    assert again.exit_code == 0, again.output
    assert (folder / "ledger").read_text() == "3\n3\n"
