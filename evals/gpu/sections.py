"""The sections by name. Each is imported when it is asked for, and fails by itself.

A section is a module `evals.gpu.NAME` with `rows(bench: Bench) -> Iterator[Row]`. It may have
`panel(axes, figures: Lookup) -> None`, which draws its main figure.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import Final

from evals.engine.rows import Row
from evals.gpu.bench import Bench
from evals.planning.effort import Skipped

SECTIONS: Final = ("engine", "decoders", "diffusion", "trainers", "vllm", "strategies")
_FAILED: Final = "failed: "


def found_by(section: str, bench: Bench) -> tuple[str, list[Row]]:
    """What a section finds, up to where it fails; then the reason, in a row of its own."""
    found: list[Row] = []
    begun = time.monotonic()
    try:
        found.extend(module(section).rows(bench))
    except Skipped as reason:
        found.append(Row(section, "", f"skipped: {reason}", None, ""))
    except Exception as error:  # noqa: BLE001 - it is told, and the other sections go on
        found.append(Row(section, "", f"{_FAILED}{type(error).__name__}: {error}", None, ""))
    print(f"{section} took {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    return section, found


def failed(rows: Iterable[Row]) -> bool:
    """Whether a section, or a part of one, failed rather than finding nothing to run."""
    return any(row.metric.startswith(_FAILED) and row.case in SECTIONS for row in rows)


def module(section: str) -> ModuleType:
    """The module of a section."""
    return import_module(f"evals.gpu.{section}")
