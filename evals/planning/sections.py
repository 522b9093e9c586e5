"""The parts of the evaluation by name. Each is imported when it is asked for, and not before."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Final

from evals.engine.rows import Row
from evals.planning.effort import Effort, Skipped

SECTIONS: Final = ("orchestration", "validity", "quality", "healing", "choice", "skills")


async def rows_of(sections: Iterable[str], effort: Effort, **options: object) -> list[Row]:
    """What the sections find, one after the other; why, where one cannot be measured.

    `options`: what a section is asked for beside the effort, by its name.
    """
    rows: list[Row] = []
    for name in sections:
        try:
            given = [options[name]] if name in options else []
            rows += await module(name).run(effort, *given)
        except Skipped as reason:
            print(f"{name} is skipped: {reason}", file=sys.stderr, flush=True)
            rows.append(Row(name, "", f"skipped: {reason}", None, ""))
    return rows


def module(section: str) -> ModuleType:
    """The module of a section. Raises: `Skipped` when this checkout has none."""
    name = f"evals.planning.{section}"
    if find_spec(name) is None:
        raise Skipped(f"there is no {name}")
    return import_module(name)
