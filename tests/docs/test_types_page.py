"""The programs of `docs/types.md` run."""

from __future__ import annotations

import runpy
from pathlib import Path

from tests.docs.pages import DOCS, blocks


def test_the_programs_of_the_page_run(tmp_path: Path) -> None:
    program = [each.text for each in blocks(DOCS / "types.md") if each.language == "python"]
    (tmp_path / "program.py").write_text("\n".join(program))
    names = runpy.run_path(str(tmp_path / "program.py"))
    assert names["result"].outputs.text == "TEA 0"
    step = names["flow"].nodes["hits_2"]
    assert (step.retry.attempts, step.timeout, step.arguments["limit"]) == (2, 5, 5)
