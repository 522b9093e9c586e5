"""`python scripts/size.py [--json]`: files and lines of each package, beside its budget.

Counts the Python files that git tracks or would track. `BUDGET` is what a package may have; a test
holds it, so raising a number is a reviewed line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
BUDGET: Final[dict[str, tuple[int, int]]] = {
    "tests": (1_215, 160_500),
    "weft": (1_270, 189_000),
    "weft/agents": (122, 17_500),
    "weft/cli": (105, 13_200),
    "weft/cluster": (22, 4_000),
    "weft/core": (54, 7_300),
    "weft/decoding": (152, 24_700),
    "weft/durability": (56, 9_500),
    "weft/engine": (41, 7_000),
    "weft/evaluation": (22, 3_000),
    "weft/optimisation": (79, 12_000),
    "weft/planner": (62, 9_600),
    "weft/reasoning": (108, 14_300),
    "weft/serving": (194, 28_800),
    "weft/testing": (10, 1_900),
    "weft/training": (50, 6_900),
    "weft/validation": (9, 1_300),
    "weft/workflow": (200, 30_200),
}
"""Package to (files, lines)."""


@dataclass(frozen=True, slots=True)
class Size:
    """Files and lines of a package; the median and the largest file; files under 40 lines."""

    package: str
    files: int
    lines: int
    median: int
    largest: int
    small: int


def main() -> None:
    """Print the table; the exit status is 1 where a package is over its budget."""
    found = sizes()
    if "--json" in sys.argv[1:]:
        print(json.dumps([asdict(size) for size in found], indent=1))
    else:
        print(table(found))
    sys.exit(bool(over_budget(found)))


def sizes() -> list[Size]:
    """Of every package of weft, of weft as a whole and of the tests."""
    files = {path: _lines(path) for path in _tracked("weft", "tests")}
    groups: dict[str, list[Path]] = {}
    for path in files:
        top, *inner = path.relative_to(ROOT).parts
        groups.setdefault(top, []).append(path)
        if top == "weft" and len(inner) > 1:
            groups.setdefault(f"weft/{inner[0]}", []).append(path)
    return [_size(name, {path: files[path] for path in groups[name]}) for name in sorted(groups)]


def over_budget(found: list[Size]) -> list[str]:
    """What is over its budget, in words; packages without one as well."""
    told = []
    for size in found:
        files, lines = BUDGET.get(size.package, (0, 0))
        if size.files > files:
            told.append(f"{size.package}: {size.files:,} files, budget {files:,}")
        if size.lines > lines:
            told.append(f"{size.package}: {size.lines:,} lines, budget {lines:,}")
    return told


def table(found: list[Size]) -> str:
    """One line a package."""
    head = ("files", "budget", "lines", "budget", "median", "largest", "under 40")
    lines = [f"{'package':18}" + "".join(f"{word:>9}" for word in head)]
    for size in found:
        files, most = BUDGET.get(size.package, (0, 0))
        row = (size.files, files, size.lines, most, size.median, size.largest, size.small)
        lines.append(f"{size.package:18}" + "".join(f"{number:9,}" for number in row))
    return "\n".join([*lines, *over_budget(found)])


def _size(name: str, files: dict[Path, int]) -> Size:
    own = [lines for path, lines in files.items() if path.name != "__init__.py"] or [0]
    return Size(
        name,
        files=len(files),
        lines=sum(files.values()),
        median=round(median(own)),
        largest=max(files.values()),
        small=sum(lines < 40 for lines in own),
    )


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _tracked(*folders: str) -> list[Path]:
    listed = subprocess.run(  # noqa: S603
        ["git", "ls-files", "-co", "--exclude-standard", "-z", *folders],  # noqa: S607
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    paths = {ROOT / name for name in listed.split("\0") if name.endswith(".py")}
    return sorted(path for path in paths if path.exists())


if __name__ == "__main__":
    main()
