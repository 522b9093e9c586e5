"""The program of `docs/types.md` runs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from tests.docs.pages import DOCS


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    (program,) = re.findall(
        r"^```python\n(.*?)^```", (DOCS / "types.md").read_text(), re.DOTALL | re.MULTILINE
    )
    (tmp_path / "program.py").write_text(program)
    names = runpy.run_path(str(tmp_path / "program.py"))
    assert names["result"].outputs.text == "TEA 0"
