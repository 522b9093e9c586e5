"""What a workflow file can reach in Python, and what it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from tests.workflow.case import run
from weft.core.errors import SourceError
from weft.testing import FakeTools, MemoryStore

PYTHON = '''\
"""Functions, one of them borrowed."""

from os import system

import weft

secret = "x"


def one(n: int = 1) -> int:
    return n


async def later(n: int) -> int:
    return n


class Callable:
    def __call__(self, n: int) -> int:
        return n


made = Callable()


@weft.tool(resource="slots")
def marked(n: int) -> int:
    """A tool."""
    return n
'''


def load(folder: Path, nodes: str, more: str = "") -> weft.Flow:
    (folder / "code.py").write_text(PYTHON)
    file = folder / "flow.yaml"
    file.write_text(f"name: x\n{more}nodes:\n{nodes}\noutputs: {{a: '{{{{ a }}}}'}}\n")
    return weft.load(file)


@pytest.mark.parametrize(
    "node",
    [
        "{call: './code.py:one', with: {n: 3}}",
        "{call: code.py:one, with: {n: 3}}",
        "{call: './code.py:later', with: {n: 3}}",
        "{call: './code.py:marked', with: {n: 3}}",
        "{tool: './code.py:marked', with: {n: 3}}",
        "{call: 'tests.workflow.whole.tools:count_words', with: {text: a b c}}",
    ],
)
def test_what_can_be_called(tmp_path: Path, node: str) -> None:
    assert load(tmp_path, f"  a: {node}").run_sync().outputs == {"a": 3}


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("./code.py:system", "defines no function"),
        ("./code.py:secret", "defines no function"),
        ("./code.py:made", "defines no function"),
        ("./code.py:on", "did you mean 'one'?"),
        ("./code.py:", "defines no function"),
        ("code.py", "not the path of a tool"),
        ("os:system", "not a tool"),
        ("builtins:eval", "not a tool"),
        ("nowhere.at.all:f", "no module"),
        ("tests.workflow.whole.tools:shout", "not a tool"),
        ("/etc/passwd:x", "leads out"),
        ("../code.py:one", "leads out"),
        ("./nowhere.py:one", "no file"),
        ("./code.py/../../x.py:one", "leads out"),
        ("./\\0.py:x", "not the path"),
    ],
)
def test_what_cannot_be_called(tmp_path: Path, reference: str, message: str) -> None:
    flow = load(tmp_path, f'  a: {{call: "{reference}"}}')
    with pytest.raises(SourceError) as caught:
        flow.check()
    assert message in str(caught.value)
    assert caught.value.line == 3
    with pytest.raises(SourceError):
        flow.start()


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "outside.py").write_text(PYTHON)
    (inside / "link.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(SourceError, match="leads out"):
        load(inside, "  a: {call: './link.py:one'}").check()
    (tmp_path / "outside.yaml").write_text("name: x")
    (inside / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    with pytest.raises(SourceError, match="leads out"):
        load(inside, "  a: {workflow: ./link.yaml}")


def test_loading_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "boom.py").write_text("raise SystemExit('imported')\n")
    flow = load(tmp_path, "  a: {call: './boom.py:f'}", "tools: {t: './boom.py:t'}\n")
    assert flow.mermaid()
    assert flow.to_yaml()
    with pytest.raises(SourceError, match="imported"):
        flow.check()


def test_a_tool_may_name_its_own_slots(tmp_path: Path) -> None:
    nodes = "  a: {map: [1, 2], do: {tool: t, with: {n: '{{ item }}'}}}"
    more = "tools: {t: './code.py:marked'}\nrun: {limits: {slots: 1}}\n"
    load(tmp_path, nodes, more).check()
    with pytest.raises(SourceError, match="slot"):
        load(tmp_path, nodes, more.replace("slots", "slot")).check()


def test_the_same_node_of_another_definition_is_not_the_same(tmp_path: Path) -> None:
    """What is cached depends on what a node is, with everything that it names."""
    calls = []

    def count(n: int) -> int:
        calls.append(n)
        return n

    part = "name: p\nnodes: {v: {value: %s}}\noutputs: {x: '{{ v }}'}\n"
    nodes = "  a: {workflow: ./part.yaml, cache: true}"
    store = MemoryStore()
    found = []
    for value in (1, 1, 2):
        (tmp_path / "part.yaml").write_text(part % value)
        found.append(run(load(tmp_path, nodes), models=None, tools=None, store=store))
    assert [result.outputs["a"]["x"] for result in found] == [1, 1, 2]
    assert [result.outcomes["a"].via for result in found] == ["", "cache", ""]
    tools = FakeTools(t=count)
    for use in ("./code.py:marked", "./code.py:marked", "./other.py:marked"):
        flow = load(
            tmp_path, "  a: {tool: t, with: {n: 1}, cache: true}", f"tools: {{t: '{use}'}}\n"
        )
        run(flow, models=None, tools=tools, store=store)
    assert calls == [1, 1]


EFFECTS = """\
import weft


@weft.tool(effect="unknown")
def pay(amount: int, idempotency_key: str = "mine") -> str:
    \"\"\"Pay.\"\"\"
    return f"{amount} {idempotency_key}"


@weft.tool(pure=True)
def read(amount: int) -> int:
    \"\"\"Read.\"\"\"
    return amount
"""


def effects(folder: Path, declared: str, call: str = "pay") -> weft.Flow:
    (folder / "pay.py").write_text(EFFECTS)
    file = folder / "flow.yaml"
    file.write_text(
        f"name: x\ntools: {{pay: {declared}}}\nnodes:\n  a: {{tool: {call}, with: {{amount: 3}}}}\n"
        "outputs: {a: '{{ a }}'}\n"
    )
    return weft.load(file)


def test_a_workflow_says_what_a_tool_does(tmp_path: Path) -> None:
    flow = effects(tmp_path, "{use: './pay.py:pay', effect: idempotent}")
    [declared] = flow.unit.document.tools.values()
    assert declared.effects == {"": "idempotent"}
    paid = run(flow, models=None, tools=None).outputs["a"]
    assert paid.startswith("3 ")
    assert len(paid) == len("3 ") + 32


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("{use: './pay.py:pay', effect: twice}", "effect"),
        ("{use: './pay.py:pay', effect: {pay: once}}", "`effect` does not go with a single tool"),
        ("{use: './pay.py:read', effect: once}", "a pure tool has no effect"),
    ],
)
def test_an_effect_that_cannot_be(tmp_path: Path, declared: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        run(effects(tmp_path, declared), models=None, tools=None)
