"""The file in which an evaluation leaves its rows, with what made them. Computes no figure.

    {"environment": {"date", "commit", "machine", "command", "load", "python", "weft", ...},
     "rows": [{"case", "system", "metric", "value", "unit"}, ...]}

The texts read their figures from such files: `evals.figures`.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft import __version__

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

REPOSITORY: Final = Path(__file__).parents[1]
_SOURCES: Final = ("weft", "evals", "examples", "constraints.txt", ":(exclude)evals/figures")
_WRITTEN: Final = ("--json", "--plot")
_LOAD: Final = f"{os.getloadavg()[0]:.1f}"  # of other programs: before the evaluation has begun


def environment(packages: Iterable[str] = (), **also: str) -> dict[str, str]:
    """Date, commit, machine and command of this process, and the versions of `packages`.

    A commit ends in "+changes" where tracked sources differ from it; it is "unknown" outside of a
    checkout. The commit and `load`, the load average, are those of the start.
    """
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _COMMIT,
        "machine": _machine(),
        "command": _command(),
        "load": _LOAD,
        "python": platform.python_version(),
        "weft": __version__,
        **{name: _version(name) for name in packages},
        **also,
    }


def write_results(
    path: Path, rows: Iterable[DataclassInstance], about: Mapping[str, str] | None = None
) -> None:
    """Write the rows to `path`, with `about` (default: `environment()`) in front of them."""
    found = {"environment": about or environment(), "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def title(about: Mapping[str, str]) -> str:
    """The environment on one line, above the tables of an evaluation."""
    return ", ".join(f"{name} {value}" for name, value in about.items())


def _command() -> str:
    """The command line, without the files that it writes; of other paths only the name."""
    main = sys.modules["__main__"].__spec__
    given = [f"python -m {main.name.removesuffix('.__main__')}" if main else sys.argv[0]]
    for before, argument in pairwise(sys.argv):
        if before not in _WRITTEN and argument not in _WRITTEN:
            given.append(argument)
    return " ".join(Path(word).name if Path(word).is_absolute() else word for word in given)


def _commit() -> str:
    commit = _git("rev-parse", "--short=12", "HEAD")
    if not commit:
        return "unknown"
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", *_SOURCES)
    return commit + ("+changes" if changed else "")


def _git(*arguments: str) -> str:
    try:
        ended = subprocess.run(
            ["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return ended.stdout.strip()


def _machine() -> str:
    return ", ".join(
        (f"{platform.system()} {platform.machine()}", *_processor(), f"{os.cpu_count()} cores")
    )


def _processor() -> list[str]:
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return []
    return re.findall(r"^model name\s*:\s*(.+?)\s*$", told, re.MULTILINE)[:1]


def _version(package: str) -> str:
    for name in (package, f"{package}-cpu"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "not installed"


_COMMIT: Final = _commit()  # what has been loaded by now is what measures
