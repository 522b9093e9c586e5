"""`weft run --compare` does everything twice: both runs are kept, and no `once` call is doubled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import go_into
from tests.cli.command_line import typed as weft

TOOLS = '''
import weft


@weft.tool(effect="once")
def pay(amount: int) -> str:
    """Pay."""
    with open("ledger", "a") as ledger:
        ledger.write("paid\\n")
    return "ok"


@weft.tool(pure=True)
def look() -> str:
    """Look."""
    return "seen"
'''
PAY = """
name: p
nodes: {paid: {tool: ./tools.py:pay, with: {amount: 30}}}
outputs: {r: "{{ paid }}"}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go_into(tmp_path, monkeypatch, "own.sqlite")
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "p.yaml").write_text(PAY)
    return tmp_path


def refused(text: str, *nodes: str) -> None:
    Path("f.yaml").write_text(text)
    ran = weft("run", "f.yaml", "--compare")
    assert ran.exit_code == 2
    for node in nodes:
        assert f"--confirm {node}=repeat" in ran.stderr.replace("'", "").replace("\n", " ")
    assert not Path("ledger").exists()


def test_a_comparison_does_not_pay_twice_unasked(folder: Path) -> None:
    refused(PAY, "paid")
    assert "paid (./tools.py:pay)" in weft("run", "p.yaml", "--compare").stderr
    assert json.loads(weft("runs", "--json").stdout) == []


def test_both_runs_of_a_comparison_are_recorded(folder: Path) -> None:
    ran = weft("run", "p.yaml", "--compare", "--confirm", "paid=repeat", "--run-id", "mine")
    assert ran.exit_code == 0
    assert (folder / "ledger").read_text() == "paid\npaid\n"
    kept = json.loads(weft("runs", "--json").stdout)
    assert [run["standing"] for run in kept] == ["succeeded", "succeeded"]
    assert "mine" in [run["run"] for run in kept]


@pytest.mark.parametrize(
    ("text", "node"),
    [
        (
            (
                "name: f\nnodes: {all: {map: [1, 2], as: n, do: {nodes: {pay: {tool:"
                " ./tools.py:pay, with: {amount: '{{ n }}'}}}, result: '{{ pay }}'}}}\n"
                "outputs: {r: '{{ all }}'}"
            ),
            "all/pay",
        ),
        ("name: f\nnodes: {sub: {workflow: ./p.yaml}}\noutputs: {r: '{{ sub }}'}", "sub/paid"),
        (
            (
                "name: f\nnodes: {a: {tool: ./tools.py:look, alternatives: [{tool: ./tools.py:pay,"
                " with: {amount: 1}}]}}\noutputs: {r: '{{ a }}'}"
            ),
            "a",
        ),
        (
            (
                "name: f\nmodels: {m: {use: openai, model: m, base_url: 'http://127.0.0.1:9/v1'}}\n"
                "nodes: {a: {model: m, prompt: hi, tools: ['./tools.py:pay'], agent: react}}\n"
                "outputs: {r: '{{ a }}'}"
            ),
            "a",
        ),
        (
            (
                "name: f\ntools: {s: {mcp: {command: [no-such-server]}, effect: {pay: once}}}\n"
                "nodes: {a: {tool: s.pay}, b: {tool: s.look}}\noutputs: {r: '{{ a }}'}"
            ),
            "a",
        ),
    ],
    ids=["map", "included", "alternative", "agent", "server"],
)
def test_calls_that_must_not_be_repeated_are_found_everywhere(text: str, node: str) -> None:
    refused(text, node)


def test_consent_is_for_the_nodes_that_it_names(folder: Path) -> None:
    ran = weft("run", "p.yaml", "--compare", "--confirm", "pay=repeat")
    assert ran.exit_code == 2
    assert "such nodes are: paid" in ran.stderr
    assert weft("run", "p.yaml", "--confirm", "paid=repeat").exit_code == 2
    assert weft("run", "p.yaml", "--compare", "--confirm", "paid=done").exit_code == 2
    assert not (folder / "ledger").exists()
    assert weft("run", "p.yaml", "--compare", "--confirm", "p*=repeat").exit_code == 0
