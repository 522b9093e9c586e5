"""The program of `docs/types.md` runs."""

from __future__ import annotations

import runpy
from pathlib import Path

from tests.docs.pages import DOCS, blocks


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    (program,) = (each.text for each in blocks(DOCS / "types.md") if each.language == "python")
    (tmp_path / "program.py").write_text(program)
    names = runpy.run_path(str(tmp_path / "program.py"))
    assert names["result"].outputs.text == "TEA 0"
