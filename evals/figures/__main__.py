"""`python -m evals.figures [--check]`: the figures of README.md and docs/ from their rows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from evals.figures.markers import rewritten
from evals.figures.sources import Sources
from evals.figures.unmarked import COMPARED, idle, marked_in_code, unmarked
from evals.results import REPOSITORY


def texts(root: Path = REPOSITORY) -> Iterator[Path]:
    """README.md and docs/, without decisions, which are of their day, and what is made of code."""
    yield root / "README.md"
    for path in sorted((root / "docs").rglob("*.md")):
        if path.parent.name not in ("adr", "reference"):
            yield path


def faults(path: Path, sources: Sources) -> Iterator[str]:
    """What is wrong with the figures of a text."""
    text = path.read_text("utf-8")
    made, failed = rewritten(text, sources)
    yield from dict.fromkeys(failed)
    if made != text:
        yield "differs from its files: run `make figures`"
    for line, number in unmarked(text, cells=path.parent.name == "benchmarks"):
        yield f"line {line}: “{number}” is measured, and nothing says where"
    for shown in idle(text):
        yield f"“{shown}” is marked as given and is no number"
    for code in marked_in_code(text):
        yield f"{code}: a marker in code is seen by who reads it"
    for found in COMPARED.finditer(text):
        test = REPOSITORY / found["test"]
        if not test.is_file() or path.name not in test.read_text("utf-8"):
            yield f"{found['test']} compares no table of {path.name}"


def main() -> None:
    """Rewrite, or check."""
    parser = argparse.ArgumentParser(prog="python -m evals.figures", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 on a fault")
    asked = parser.parse_args()
    sources, told = Sources(REPOSITORY / "docs" / "benchmarks"), []
    for path in texts():
        name = path.relative_to(REPOSITORY)
        if not asked.check:
            made, _ = rewritten(path.read_text("utf-8"), sources)
            path.write_text(made, "utf-8")
        told += [f"{name}: {fault}" for fault in faults(path, sources)]
    if told:
        sys.exit("\n".join(told))


if __name__ == "__main__":
    main()
