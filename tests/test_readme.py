"""The README's program runs, and is the same in YAML and in Python; so is the tool of its page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import weft
from weft.testing import FakeModel

ROOT = Path(__file__).parents[1]
TOOLS = """
import weft


@weft.tool
def list_documents(folder: str) -> list[str]:
    return [f"{folder}/a", f"{folder}/b"]


@weft.tool
def read_document(path: str) -> dict[str, str]:
    return {"text": path.upper()}


def longest(notes: list[str]) -> str:
    return max(notes, key=len)
"""


def blocks(language: str, page: str = "README.md") -> list[str]:
    text = (ROOT / page).read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_both_forms_are_one_program_and_it_runs(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    program = blocks("python")[0].rpartition("\nresult = ")[0]
    (tmp_path / "program.py").write_text(program + "\nprint(flow.to_yaml())\n")
    (tmp_path / "report.yaml").write_text(blocks("yaml")[0])
    printed = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    in_yaml = weft.load(tmp_path / "report.yaml")
    in_python = weft.loads(printed.stdout, str(tmp_path / "python.yaml"))
    assert in_python.document.outputs == in_yaml.document.outputs
    models = {"small": FakeModel(lambda request: request.messages[-1].content.split("\n")[-1])}
    wanted = {"notes": ["X/A", "X/B"], "longest": "X/A"}
    for flow in (in_yaml, in_python):
        assert list(flow.document.nodes) == ["files", "notes", "best"]
        assert flow.run_sync({"folder": "x"}, models=models).outputs == wanted


def test_the_first_tool_of_its_page_is_one(tmp_path: Path) -> None:
    tool = blocks("python", "docs/tools.md")[0]
    source = f"import weft\n\n{tool}\nprint(count_words.spec.name)\n"
    (tmp_path / "tool.py").write_text(source)
    printed = subprocess.run(
        [sys.executable, "tool.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert printed.stdout == "count_words\n"
