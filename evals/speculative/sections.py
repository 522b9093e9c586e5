"""The parts of the evaluation by name. Each is imported when it is asked for, and not before.

A section is a module `evals.speculative.NAME` with `rows(quick: bool) -> list[dict]`, each row with
case, system, metric, value and unit. It may have `table(rows: Sequence[Row]) -> str`, `TARGETS`
(what its figures were to reach) and `panel(axes, figures: Lookup) -> None`, which draws its main
figure.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Final

from evals.engine.rows import Row
from evals.planning.effort import Skipped

SECTIONS: Final = (
    "local",
    "assisted",
    "caches",
    "lossless",
    "lossless_networks",
    "overlap",
    "easyspec",
    "choice",
    "auto",
    "sizes",
    "vllm",
)

Found = tuple[str, Sequence[Row]]


def found_by(sections: Iterable[str], *, quick: bool) -> list[Found]:
    """What each section finds, one after the other; why, where one cannot be measured."""
    found: list[Found] = []
    for name in sections:
        begun = time.monotonic()
        try:
            found.append((name, [Row(**row) for row in module(name).rows(quick)]))
        except Skipped as reason:
            print(f"{name} is skipped: {reason}", file=sys.stderr, flush=True)
            found.append((name, [Row(name, "", f"skipped: {reason}", None, "")]))
        print(f"{name} took {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    return found


def module(section: str) -> ModuleType:
    """The module of a section. Raises: `Skipped` when this checkout has none."""
    name = f"evals.speculative.{section}"
    if find_spec(name) is None:
        raise Skipped(f"there is no {name}")
    return import_module(name)
