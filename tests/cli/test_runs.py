"""Recorded runs on the command line: `runs`, `resume`, `answer`, `replay`, `diff`."""

from __future__ import annotations

import json
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import go_into
from tests.cli.command_line import typed as weft
from tests.cli.hostile import ALL, FORBIDDEN
from weft.core.ids import RunId
from weft.workflow.runtime.journals import open_journal

TOOLS = '''
import weft

@weft.tool(effect="once")
def pay(amount: int) -> str:
    """Pay."""
    with open("ledger", "a") as ledger:
        ledger.write(f"{amount}\\n")
    return f"paid {amount}"

@weft.tool
def echo(text: str) -> str:
    """Say it again."""
    return text

def double(values: list[int]) -> int:
    return 2 * sum(values)
'''
FLOW = """
name: bill
inputs: {prices: {type: array, items: {type: integer}, default: [1, 2]}}
tools: {pay: "./tools.py:pay", echo: "./tools.py:echo"}
nodes:
  total: {reduce: "./tools.py:double", over: "{{ prices }}"}
  sure: {ask: "Pay {{ total }}?", schema: boolean}
  why: {ask: "Why?"}
  paid: {when: "{{ sure }}", tool: pay, with: {amount: "{{ total }}"}}
outputs: {paid: "{{ paid }}: {{ why }}"}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go_into(tmp_path, monkeypatch, "own/journal.sqlite")
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "bill.yaml").write_text(FLOW)
    return tmp_path


def data(*words: str) -> Any:
    return json.loads(weft(*words, "--json").stdout)


def test_a_run_that_asks_is_answered_and_resumed(folder: Path) -> None:
    ran = weft("run", "bill.yaml", "--run-id", "first")
    assert ran.exit_code == 4
    assert "weft answer first sure VALUE" in ran.stderr
    assert "resume it with `weft resume first`" in ran.stderr
    listed = data("runs")
    assert [(run["run"], run["standing"]) for run in listed] == [("first", "asking")]
    assert sorted(listed[0]["asking"]) == ["sure", "why"]
    assert "asking" in weft("runs").stdout
    shown = weft("runs", "show", "last").stdout
    assert "weft answer first sure VALUE   (y or n)" in shown
    assert weft("answer", "first", "sure", "perhaps").exit_code == 2
    assert weft("answer", "first", "other", "x").exit_code == 2
    assert "go on with: weft resume first" in weft("answer", "first", "sure", "y").stdout
    resumed = weft("resume", "--answer", "why=because")
    assert resumed.exit_code == 0, resumed.output
    assert "paid 6: because" in resumed.stdout
    assert "pay   paid  " in resumed.stderr
    assert "done" in resumed.stderr
    assert (folder / "ledger").read_text() == "6\n"
    assert data("runs")[0]["standing"] == "succeeded"
    once = data("runs", "show", "first")["once"]
    assert [(call["tool"], call["done"]) for call in once] == [("pay", "done")]
    again = weft("resume", "first")
    assert again.exit_code == 0, again.output
    assert "first has succeeded: nothing is left to do" in again.stderr
    assert data("resume", "first") == {"run": "first", "status": "succeeded", "exit_code": 0}
    for more in (("--confirm", "paid=repeat"), ("--answer", "why=so"), ("--accept-changes",)):
        assert weft("resume", "first", *more).exit_code == 2
    assert (folder / "ledger").read_text() == "6\n"


def test_a_run_is_replayed_here_and_from_a_file_elsewhere(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert weft("run", "bill.yaml", "--answer", "sure=y", "--answer", "why=so").exit_code == 0
    assert weft("replay").stdout == "identical: 4 nodes\n"
    assert weft("runs", "export", "last", "bill.cassette").exit_code == 0
    other = tmp_path_factory.mktemp("other")
    (folder / "bill.cassette").rename(other / "bill.cassette")
    (folder / "bill.yaml").rename(other / "renamed.yaml")
    (folder / "tools.py").rename(other / "tools.py")
    monkeypatch.chdir(other)
    monkeypatch.setenv("WEFT_JOURNAL", str(other / "journal.sqlite"))
    without = weft("replay", "bill.cassette")
    assert without.exit_code == 2
    assert "--file" in without.stderr
    assert data("replay", "bill.cassette", "--file", "renamed.yaml")["identical"] == 4
    assert weft("runs", "import", "bill.cassette").exit_code == 0
    assert weft("runs", "import", "bill.cassette").exit_code == 1
    assert weft("runs", "import", "bill.cassette", "--as", "mine").stdout == "imported mine\n"
    assert weft("replay", "mine", "--file", "renamed.yaml", "--strict").exit_code == 0
    assert not (other / "ledger").exists()


def test_what_comes_out_differently_is_told(folder: Path) -> None:
    weft("run", "bill.yaml", "--answer", "sure=y", "--answer", "why=so")
    changed_text = FLOW.replace('"{{ total }}"', '"{{ total + 1 }}"')
    (folder / "bill.yaml").write_text(changed_text.replace("{{ why }}", "{{ why }}!"))
    changed = weft("replay")
    assert changed.exit_code == 1
    assert "asked otherwise  paid: the tool pay" in changed.stdout
    assert "output paid" in changed.stdout
    assert "paid 6: so!" in changed.stdout
    assert data("replay")["ok"] is False


def test_a_changed_workflow_is_refused_with_a_table(folder: Path) -> None:
    weft("run", "bill.yaml", "--run-id", "first")
    (folder / "bill.yaml").write_text(FLOW.replace("Why?", "Really why?"))
    refused = weft("resume", "first", "--answer", "sure=y", "--answer", "why=so")
    assert refused.exit_code == 2
    assert "--accept-changes" in refused.stderr
    assert '+  why: {ask: "Really why?"}' in refused.stderr
    verdicts = [line.split() for line in refused.stderr.splitlines() if "changed" in line.split()]
    assert verdicts[:2] == [["changed", "bill.yaml"], ["why", "changed"]]
    accepted = weft(
        "resume", "first", "--accept-changes", "--answer", "sure=y", "--answer", "why=so"
    )
    assert accepted.exit_code == 0, accepted.output
    assert "total succeeded before" in accepted.stderr


def test_a_part_runs_again_live(folder: Path) -> None:
    weft("run", "bill.yaml", "--run-id", "first", "--answer", "sure=y", "--answer", "why=so")
    (folder / "ledger").unlink()
    forked = weft("replay", "first", "--from", "why", "--answer", "why=else")
    assert forked.exit_code == 0, forked.output
    assert "paid 6: else" in forked.stdout
    assert not (folder / "ledger").exists()
    newer = data("runs")[0]["run"]
    assert data("runs", "show", newer)["settings"]["forked"] == "first"
    compared = weft("diff", "first", newer)
    assert compared.exit_code == 1
    assert "-paid 6: so" in compared.stdout
    assert "+paid 6: else" in compared.stdout
    assert weft("diff", "first", "first").exit_code == 0
    assert data("diff", "first", newer)["nodes"][2]["same"] is False
    assert weft("replay", "first", "--from", "nothing").exit_code == 2


def test_runs_are_listed_and_removed() -> None:
    assert "no run is recorded" in weft("runs").stdout
    for number in range(4):
        weft(
            "run", "bill.yaml", "--run-id", f"r{number}", "--answer", "sure=n", "--answer", "why=x"
        )
    assert [run["run"] for run in data("runs", "--limit", "2")] == ["r3", "r2"]
    assert data("runs", "--flow", "other") == []
    assert weft("runs", "prune").exit_code == 2
    assert data("runs", "prune", "r1")["runs"] == ["r1"]
    assert data("runs", "prune", "--keep", "1")["runs"] == ["r2", "r0"]
    assert weft("runs", "prune", "--older-than", "30d", "--max-bytes", "1GB").exit_code == 0
    assert weft("runs", "prune", "nothing").exit_code == 2
    assert [run["run"] for run in data("runs")] == ["r3"]


def test_nothing_is_recorded_where_that_is_asked_for(folder: Path) -> None:
    answers = ("--answer", "sure=n", "--answer", "why=x")
    assert weft("run", "bill.yaml", "--durability", "none", *answers).exit_code == 0
    text = FLOW.replace("nodes:", "run: {durability: none}\nnodes:", 1)
    (folder / "quiet.yaml").write_text(text)
    assert weft("run", "quiet.yaml", *answers).exit_code == 0
    assert not (folder / "own").exists()
    assert weft("run", "quiet.yaml", "--durability", "exit", *answers).exit_code == 0
    assert len(data("runs")) == 1
    assert weft("run", "quiet.yaml", "--durability", "always", *answers).exit_code == 2
    weft("run", "bill.yaml", "--journal", "elsewhere.sqlite", *answers)
    assert len(data("runs", "--journal", "elsewhere.sqlite")) == 1


def test_a_journal_that_cannot_be_used(folder: Path) -> None:
    (folder / "own").write_text("a file")
    failed = weft("run", "bill.yaml", "--answer", "sure=n")
    assert failed.exit_code == 1
    assert "WEFT_JOURNAL" in failed.stderr


def test_hostile_records_print_as_text(folder: Path) -> None:
    (folder / "tools.py").write_text(f"{TOOLS}\ndef evil() -> str:\n    return {ALL!r}\n")
    (folder / "evil.yaml").write_text(
        """
name: evil
nodes:
  a: {call: "./tools.py:evil"}
  b: {ask: "{{ a }}"}
outputs: {o: "{{ a }} {{ b }}"}
"""
    )
    weft("run", "evil.yaml", "--run-id", "one")
    weft("resume", "one", "--answer", "b=x")
    weft("run", "evil.yaml", "--run-id", "two", "--answer", "b=y")
    weft("run", "evil.yaml", "--run-id", "three")
    for words in ("runs", "runs show one", "runs show three", "diff one two", "replay one"):
        shown = weft(*words.split())
        assert not set(shown.output) & set(FORBIDDEN), words
        assert "Traceback" not in shown.output


def test_the_users_own_journal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEFT_JOURNAL")
    monkeypatch.setenv("WEFT_HOME", str(folder / "home"))
    open_journal().close()
    assert (folder / "home" / "journal.sqlite").stat().st_mode & 0o777 == 0o600


def test_whoever_reads_a_journal_makes_none(folder: Path) -> None:
    for words in ("runs", "runs show last", "replay last", "simulate last", "answer last sure y"):
        read = weft(*words.split(), "--journal", "nowhere/j.sqlite")
        assert read.exit_code == 1, words
        assert "there is no journal nowhere/j.sqlite" in read.stderr
        assert "hint: " in read.stderr
    assert not (folder / "nowhere").exists()
    assert "no run is recorded" in weft("runs").stdout  # nobody named that one


def test_a_folder_is_no_journal(folder: Path) -> None:
    for words in ("runs", "run bill.yaml"):
        refused = weft(*words.split(), "--journal", str(folder))
        assert refused.exit_code == 1
        assert "is a folder" in refused.stderr
        assert "journal.sqlite" in refused.stderr


@pytest.mark.parametrize("name", ["", "last", "a b", "../up", "-x", "a\x1b[2J", "x" * 200])
def test_names_that_runs_cannot_have(name: str) -> None:
    assert weft("run", "bill.yaml", f"--run-id={name}").exit_code == 2
    assert data("runs") == []


def test_a_run_that_is_there_already_is_not_begun_again(folder: Path) -> None:
    answers = ("--answer", "sure=n", "--answer", "why=so")
    weft("run", "bill.yaml", "--run-id", "one", *answers)
    again = weft("run", "bill.yaml", "--run-id", "one", *answers)
    assert again.exit_code == 1
    assert "weft resume one" in again.stderr


def test_the_list_has_a_name_too_and_options_stand_behind_it() -> None:
    weft("run", "bill.yaml", "--run-id", "one")
    listed, named = (weft("runs", *words).stdout for words in ((), ("list",)))
    older = [re.sub(r"(\d\S* \S+ )+ago", "", text).split() for text in (listed, named)]
    assert older[0] == older[1]  # but for their age, which may grow in between
    assert "one" in older[0]
    refused = weft("runs", "--journal", "other.sqlite", "show", "last")
    assert refused.exit_code == 2
    assert "weft runs show" in refused.stderr


def test_last_is_the_latest_run_whatever_others_are_called() -> None:
    weft("run", "bill.yaml", "--run-id", "one")
    with closing(open_journal()) as journal:
        header = replace(journal.header(RunId("one")), run=RunId("last"))
        journal.begin(header).release()
    weft("run", "bill.yaml", "--run-id", "two")
    assert data("runs", "show", "last")["run"] == "two"


def test_a_word_on_a_call_that_needs_none_is_refused(folder: Path) -> None:
    weft("run", "bill.yaml", "--run-id", "one", "--answer", "sure=y")
    refused = weft("resume", "one", "--answer", "why=so", "--confirm", "payed=done")
    assert refused.exit_code == 2
    assert "no call at 'payed' needs a confirmation" in refused.stderr
    assert "hint: every call's end is known" in refused.stderr
    assert data("runs")[0]["standing"] == "asking"  # it is as it was


def test_an_answer_that_does_not_fit_tells_how_to_go_on() -> None:
    refused = weft("run", "bill.yaml", "--run-id", "one", "--answer", "sure=maybe")
    assert refused.exit_code == 2
    assert "weft resume one --answer sure=VALUE" in refused.stderr
    assert weft("resume", "one", "--answer", "sure=n", "--answer", "why=so").exit_code == 0


def test_a_run_that_waits_is_not_called_cancelled() -> None:
    waits = weft("run", "bill.yaml", "--run-id", "one")
    assert waits.stdout.startswith("bill waits for an answer after ")
    alone = weft("run", "bill.yaml", "--durability", "none")  # nobody can go on with it
    assert alone.stdout.startswith("bill asking in ")
    assert "it is not recorded" in alone.stdout


def test_what_a_run_came_to_is_shown_where_that_is_asked_for() -> None:
    weft("run", "bill.yaml", "--run-id", "one", "--answer", "sure=y")
    assert weft("resume", "one", "--answer", "why=so").exit_code == 0
    plain = weft("runs", "show", "one").stdout
    assert "paid 6: so" not in plain
    assert "parallel speed-up" not in plain  # its parts are no one stretch of time
    assert weft("runs", "show", "one", "--outputs").stdout.endswith("\npaid\npaid 6: so\n\n")
    found = data("runs", "show", "one", "--outputs")
    assert (found["outputs"], found["missing"]) == ({"paid": "paid 6: so"}, {})
    weft("run", "bill.yaml", "--run-id", "two")
    assert list(data("runs", "show", "two", "--outputs")["missing"]) == ["paid"]


def test_a_call_that_is_asked_otherwise_and_comes_to_the_same(folder: Path) -> None:
    (folder / "bill.yaml").write_text(
        'name: ask\ntools: {echo: "./tools.py:echo"}\n'
        'nodes: {a: {tool: echo, with: {text: "so"}}}\noutputs: {a: "{{ a }}"}\n'
    )
    weft("run", "bill.yaml", "--run-id", "one")
    (folder / "bill.yaml").write_text(
        (folder / "bill.yaml").read_text().replace('text: "so"', 'text: "otherwise"')
    )
    again = weft("replay", "one")
    assert again.exit_code == 1
    assert again.stdout.startswith("one asks otherwise; 1 node the same\n")
