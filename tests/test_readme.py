"""The README's program runs, and is the same in YAML and in Python; so is the tool of its page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import weft
from weft.core.ports import ModelRequest
from weft.testing import FakeModel

ROOT = Path(__file__).parents[1]
DOCUMENTS = "examples/brief/documents"


def blocks(language: str, page: str = "README.md") -> list[str]:
    text = (ROOT / page).read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_both_forms_are_one_program_and_it_runs(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(blocks('python title="tools.py"')[0])
    program = blocks("python")[0].rpartition("\nresult = ")[0]
    (tmp_path / "program.py").write_text(program + "\nprint(flow.to_yaml())\n")
    (tmp_path / "report.yaml").write_text(blocks("yaml")[0])
    printed = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    in_yaml = weft.load(tmp_path / "report.yaml")
    in_python = weft.loads(printed.stdout, str(tmp_path / "python.yaml"))
    assert in_python.document.outputs == in_yaml.document.outputs
    assert DOCUMENTS in (ROOT / "README.md").read_text("utf-8")
    texts = [path.read_text("utf-8") for path in sorted((ROOT / DOCUMENTS).glob("*.md"))]
    notes = [text.rstrip().rpartition("\n")[2] for text in texts]
    assert len(notes) > 3

    def last_line(request: ModelRequest) -> str:
        return str(request.messages[-1].content).rstrip().rpartition("\n")[2]

    for flow in (in_yaml, in_python):
        assert list(flow.document.nodes) == ["files", "notes", "best"]
        models = {"small": FakeModel(last_line)}
        outputs = flow.run_sync({"folder": str(ROOT / DOCUMENTS)}, models=models).outputs
        assert outputs == {"notes": notes, "longest": max(notes, key=len)}


def test_the_first_tool_of_its_page_is_one(tmp_path: Path) -> None:
    tool = blocks("python", "docs/tools.md")[0]
    source = f"import weft\n\n{tool}\nprint(count_words.spec.name)\n"
    (tmp_path / "tool.py").write_text(source)
    printed = subprocess.run(
        [sys.executable, "tool.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert printed.stdout == "count_words\n"
