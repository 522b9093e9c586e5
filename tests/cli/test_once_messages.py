"""What an operator says of calls that must not be repeated, and which calls that holds for."""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import go_into
from tests.cli.command_line import typed as weft
from weft import Worker, load, open_journal
from weft.cli.reports import effects

TOOLS = '''
from pathlib import Path

import weft

@weft.tool(effect="once")
def charge(order: int) -> str:
    """Pay."""
    with open("ledger", "a") as ledger:
        ledger.write(f"{order}\\n")
    if Path("broken").exists():
        raise RuntimeError("the line broke")
    return f"receipt {order}"

@weft.tool
def price(order: int) -> int:
    """Tell it."""
    if 1 < order < 9 and Path("broken").exists():
        raise RuntimeError("no price")
    return order

@weft.tool
def ship(receipt: str) -> str:
    """Ship."""
    return "shipped " + receipt
'''
ONE = """
name: one
tools: {charge: "./tools.py:charge", ship: "./tools.py:ship"}
nodes:
  charge: {tool: charge, with: {order: 5}}
  ship: {tool: ship, with: {receipt: "{{ charge }}"}}
outputs: {ship: "{{ ship }}"}
"""
MANY = """
name: many
tools: {price: "./tools.py:price", charge: "./tools.py:charge", ship: "./tools.py:ship"}
nodes:
  done:
    map: [0, 1, 2, 3, 4, 5]
    as: order
    width: 2
    do:
      nodes:
        price: {tool: price, with: {order: "{{ order }}"}}
        charge: {tool: charge, with: {order: "{{ price }}"}}
        ship: {tool: ship, with: {receipt: "{{ charge }}"}}
      result: "{{ ship }}"
outputs: {done: "{{ done }}"}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go_into(tmp_path, monkeypatch)
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "one.yaml").write_text(ONE)
    (tmp_path / "many.yaml").write_text(MANY)
    return tmp_path


def left(name: str) -> None:
    """A run whose charges acted, and nobody knows it."""
    Path("broken").touch()
    assert weft("run", f"{name}.yaml", "--run-id", "r").exit_code == 1
    Path("broken").unlink()


def paid() -> list[int]:
    return [int(line) for line in Path("ledger").read_text().split()]


def shown() -> Any:
    return json.loads(weft("runs", "show", "r", "--json").stdout)


def once() -> dict[str, str]:
    return {call["node"]: call["done"] for call in shown()["once"]}


@pytest.mark.parametrize("resumed_before", [False, True])
def test_a_pattern_does_not_speak_for_calls_that_have_not_begun(resumed_before: bool) -> None:
    left("many")
    begun = paid()
    assert 0 < len(begun) < 6
    shutil.rmtree("journal.sqlite.once")
    if resumed_before:
        refused = weft("resume", "r")
        assert refused.exit_code == 1
        assert "at once" not in refused.stderr
        assert "may have been made" in refused.stderr
    resumed = weft("resume", "r", "--confirm", 'done[*]/charge=done:"by hand"')
    assert resumed.exit_code == 1, resumed.output
    assert "at once" not in resumed.stderr
    assert f"{6 - len(begun)} nodes made no call now" in resumed.stderr
    assert "'done[5]/charge=...'" in resumed.stderr
    assert paid() == begun
    assert once() == {f"done[{order}]/charge": "done" for order in begun}
    pattern = weft("resume", "r", "--confirm", "done[*]/charge=repeat")
    assert pattern.exit_code == 2
    assert "name each node for itself" in pattern.stderr
    words = [f"done[{order}]/charge=repeat" for order in range(6) if order not in begun]
    last = weft("resume", "r", *[part for word in words for part in ("--confirm", word)])
    assert last.exit_code == 0, last.output
    assert sorted(paid()) == [0, 1, 2, 3, 4, 5]


def test_the_printed_pattern_is_right_where_nothing_is_lost() -> None:
    left("many")
    begun = paid()
    stderr = weft("runs", "show", "r").stdout
    assert f"all {len(begun)} at once: --confirm 'done[*]/charge=done:JSON'" in stderr
    resumed = weft("resume", "r", "--confirm", 'done[*]/charge=done:"by hand"')
    assert resumed.exit_code == 0, resumed.output
    assert sorted(paid()) == [0, 1, 2, 3, 4, 5]


def test_a_retry_from_the_queue_says_what_is_undecided() -> None:
    Path("broken").touch()
    flow = load("one.yaml")

    async def main() -> None:
        with closing(open_journal()) as journal:
            submitted = flow.submit({}, key="r", journal=journal)
            worker = Worker([flow], journal)
            serving = asyncio.ensure_future(worker.serve())
            assert (await submitted.result()).status == "failed"
            worker.drain()
            await serving

    asyncio.run(main())
    done = weft("queue", "retry", "r")
    assert (done.exit_code, done.stdout) == (0, "r is queued\n")
    assert "weft resume r --confirm charge=done:JSON or charge=repeat" in done.stderr


@pytest.mark.parametrize("word", ["done", "done:null", "done:7"])
def test_what_the_tool_cannot_have_returned_is_refused(word: str) -> None:
    left("one")
    refused = weft("resume", "r", "-q", "--confirm", f"charge={word}")
    assert refused.exit_code == 2
    assert "charge cannot have returned what was said" in refused.stderr
    assert 'of {"type": "string"}' in refused.stderr.replace("\n", " ")
    assert once() == {"charge": "unknown"}
    resumed = weft("resume", "r", "--confirm", 'charge=done:"receipt"')
    assert resumed.exit_code == 0, resumed.output
    assert "shipped receipt" in resumed.stdout
    assert paid() == [5]


def test_a_changed_call_that_was_not_made_is_in_no_table(folder: Path) -> None:
    left("one")
    (folder / "one.yaml").write_text(ONE.replace("order: 5", "order: 6"))
    word = 'charge=done:"by hand"'
    resumed = weft("resume", "r", "--accept-changes", "--confirm", word)
    assert resumed.exit_code == 0, resumed.output
    assert "shipped by hand" in resumed.stdout
    assert [(c["arguments"], c["done"]) for c in shown()["once"]] == [({"order": 5}, "done")]
    assert "--confirm" not in weft("runs", "show", "r").stdout
    assert weft("replay", "r").stdout == "identical: 2 nodes\n"
    assert paid() == [5]


def test_an_unchanged_workflow_shows_no_table_of_changes() -> None:
    left("one")
    refused = weft("resume", "r")
    assert refused.exit_code == 1
    assert "finished work" not in refused.stderr
    assert "act twice" not in refused.stderr


def test_the_json_document_lists_what_a_person_has_to_judge() -> None:
    Path("broken").touch()
    ran = json.loads(weft("run", "one.yaml", "--run-id", "r", "--json").stdout)
    Path("broken").unlink()
    told = {"node": "charge", "tool": "charge", "arguments": {"order": 5}, "end": "unknown"}
    assert ran["unsettled"] == [told]
    assert json.loads(weft("resume", "r", "--json").stdout)["unsettled"] == [told]
    assert shown()["unsettled"] == [told]
    word = 'charge=done:"receipt"'
    assert json.loads(weft("resume", "r", "--confirm", word, "--json").stdout)["unsettled"] == []
    Path("broken").touch()
    unkept = json.loads(weft("run", "one.yaml", "--durability", "none", "--json").stdout)
    assert unkept["unsettled"] == [{**told, "arguments": None}]


def test_unknown_calls_come_first_and_all_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "_MOST_ROWS", 3)
    Path("many.yaml").write_text(MANY.replace("[0, 1, 2, 3, 4, 5]", "[9, 9, 9, 0, 1, 1, 1, 1]"))
    Path("tools.py").write_text(TOOLS.replace("if Path", "if order < 2 and Path", 1))
    left("many")
    rows = [line.split() for line in weft("runs", "show", "r").stdout.splitlines()]
    calls = [row[-1] for row in rows if row[:1] == ["charge"]]
    assert calls == ["unknown"] * 5


def test_a_word_may_be_corrected_while_nothing_was_built_on_it() -> None:
    Path("tools.py").write_text(TOOLS.replace('return "shipped', 'assert receipt; return "shipped'))
    left("many")
    begun = sorted(paid())
    mine = f"done[{begun[0]}]/charge"
    first = weft("resume", "r", "--confirm", 'done[*]/charge=done:""')
    assert first.exit_code == 1, first.output
    other = weft("resume", "r", "--confirm", f'done[{begun[1]}]/charge=done:"two"')
    assert other.exit_code == 1, other.output
    late = weft("resume", "r", "--confirm", f'done[{begun[1]}]/charge=done:"three"')
    assert late.exit_code == 2
    assert f"done[{begun[1]}]/ship has gone on with what was said" in late.stderr
    last = weft("resume", "r", "--confirm", f'{mine}=done:"one"')
    assert last.exit_code == 0, last.output
    assert "shipped one" in last.stdout
    assert "shipped two" in last.stdout
    assert sorted(paid()) == [0, 1, 2, 3, 4, 5]
    assert weft("replay", "r").exit_code == 0


def test_a_call_that_was_made_is_not_corrected() -> None:
    Path("tools.py").write_text(TOOLS.replace('return "shipped', 'assert 0; return "shipped'))
    assert weft("run", "one.yaml", "--run-id", "r").exit_code == 1
    assert once() == {"charge": "done"}
    refused = weft("resume", "r", "--confirm", 'charge=done:"other"')
    assert refused.exit_code == 2
    assert "every call's end is known" in refused.stderr


def test_a_pattern_corrects_nothing() -> None:
    Path("tools.py").write_text(TOOLS.replace('return "shipped', 'assert 0; return "shipped'))
    left("many")
    begun = paid()
    assert weft("resume", "r", "--confirm", 'done[*]/charge=done:"x"').exit_code == 1
    again = weft("resume", "r", "--confirm", "done[*]/charge=repeat")
    assert again.exit_code == 2
    assert sorted(paid())[: len(begun)] == sorted(begun)
    assert len(set(paid())) == len(paid())
