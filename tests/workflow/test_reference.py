"""The pages of workflows, models and tools say all there is, and what they say is so."""

from __future__ import annotations

import asyncio
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.workflow.case import echo, search
from tests.workflow.whole.tools import longest
from weft.planner.choice import LossRow, train
from weft.testing import FakeModel
from weft.workflow.document.expressions.sandbox import COUNTED, FILTERS
from weft.workflow.document.spec.nodes import KINDS, BaseNode
from weft.workflow.runtime.models.factory import check_models

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("workflows.md", "models.md", "tools.md")
TEXT = "\n".join((DOCS / page).read_text("utf-8") for page in PAGES)
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.DOTALL)
ROWS = re.findall(r"^\| `(\w+)` \| .*? \| `(\{.*\})` \|$", TEXT, re.MULTILINE)
AROUND = """\
name: x
inputs: {topic: string, score: integer, note: string, notes: [string]}
models: {small: "local:tiny"}
tools: {search: "./tools.py:search"}
"""
HITS = "  hits: {value: [{text: x}]}\n"


def test_the_first_file() -> None:
    (text,) = [text for kind, text in BLOCKS if kind == "yaml" and text.startswith("name:")]
    flow = weft.loads(text)
    assert weft.loads(flow.to_yaml()).document == flow.document


def test_the_other_blocks(tmp_path: Path) -> None:
    rows = [LossRow("hello", "small", 0.1), LossRow("hello", "big", 0.2)]
    train(rows, strength=1.0).save(tmp_path / "choice.json")
    blocks = [text for kind, text in BLOCKS if kind == "yaml" and not text.startswith("name:")]
    assert blocks
    for text in blocks:
        if named := re.match(r"# (\w+\.yaml)\n", text):
            (tmp_path / named[1]).write_text(text)
            weft.load(tmp_path / named[1])
            continue
        around, inner = AROUND.replace(", notes: [string]", ""), textwrap.indent(text, "  ")
        if text.startswith("models:"):
            around, inner = re.sub(r"models: .*\n", _with_models(text), around), ""
        if text.startswith("run:"):
            around, inner = around + text, ""
        if text.startswith("tools:"):
            around, inner = re.sub(r"tools: .*\n", text, around), ""
        text = f"{around}nodes:\n{HITS}{inner}outputs: {{o: '{{{{ hits }}}}'}}\n"
        flow = weft.loads(text, str(tmp_path / "x.yaml"))
        check_models(flow.unit)


def _with_models(block: str) -> str:
    """`block` with the models that it says are declared elsewhere in the file."""
    absent = [
        name for name in ("small", "big") if not re.search(rf"^  {name}:", block, re.MULTILINE)
    ]
    return block + "".join(f'  {name}: "local:tiny"\n' for name in absent)


@pytest.mark.parametrize(("kind", "example"), ROWS)
def test_every_example_is_a_node(kind: str, example: str, tmp_path: Path) -> None:
    (tmp_path / "part.yaml").write_text(
        "name: p\ninputs: {question: string}\nnodes: {a: {value: 1}}\noutputs: {o: '{{ a }}'}\n"
    )
    node = example.replace(r"\|", "|")
    beside = "  a: {value: 1}\n  b: {value: 1}\n  c: {value: 1}\n"
    if kind == "break":  # it stands in a loop
        node = f"{{loop: {{nodes: {{end: {node}}}, result: 1}}, until: '{{{{ false }}}}', max: 2}}"
    text = f"{AROUND}nodes:\n{HITS}{beside}  n: {node}\noutputs: {{o: '{{{{ n }}}}'}}\n"
    flow = weft.loads(text, str(tmp_path / "x.yaml"))
    assert flow.nodes["n"].kind == ("loop" if kind == "break" else kind)


def test_every_kind_key_and_filter_is_there() -> None:
    assert [kind for kind, _ in ROWS] == [kind.kind for kind in KINDS]
    own: set[str] = set()
    for kind in KINDS:
        own |= {field.alias or name for name, field in kind.model_fields.items()}
    for key in sorted(own | set(BaseNode.model_fields)):
        assert re.search(rf"\b{key}\b", TEXT), key
    aliases = {"d", COUNTED}
    for name in FILTERS.keys() - aliases:
        assert f"`{name}`" in TEXT, name


def test_the_python_program() -> None:
    (program,) = [t for kind, t in BLOCKS if kind == "python" and t.startswith("import weft")]
    body = textwrap.indent(program.replace("import weft\n", ""), "    ")
    names: dict[str, Any] = {"weft": weft, "search": weft.tool(search), "longest": longest}
    source = f"async def main(models):\n{body}    return result\n"
    source = source.replace('topic="rivers")', 'topic="rivers", models=models)', 1)
    exec(compile(source, "docs/workflows.md", "exec"), names)
    result = asyncio.run(names["main"]({"small": FakeModel(echo)}))
    assert result.ok
    assert result.outputs["answer"] == "<Summarise:\nrivers 0>"
    assert list(result.outcomes)[:4] == ["hits", "notes", "best", "kept"]
