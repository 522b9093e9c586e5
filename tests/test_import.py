"""Importing weft is light and quiet."""

import subprocess
import sys


def test_importing_weft_loads_no_heavy_library() -> None:
    heavy = ["torch", "transformers", "openai", "httpx", "rich", "typer", "numpy", "networkx"]
    code = f"import sys, weft; print([name for name in {heavy!r} if name in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
    assert found.stderr == ""
