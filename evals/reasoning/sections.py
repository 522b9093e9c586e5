"""The parts of the evaluation by name. Each is imported when it is asked for, and not before.

A section is a module `evals.reasoning.NAME` with `async def run(effort: Effort) -> list[Row]`. It
may have `table(rows) -> str`, `TARGETS` (what its figures were to reach) and
`panel(axes, figures: Lookup) -> None`, which draws its main figure.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Final

from evals.engine.rows import Row
from evals.planning.effort import Effort, Skipped

if TYPE_CHECKING:
    from evals.reasoning.live.terms import LiveTerms

SECTIONS: Final = ("scripted", "votes", "models", "parallelism", "apr", "code", "hogwild", "live")

Found = tuple[str, Sequence[Row]]


async def found_by(
    sections: Iterable[str], effort: Effort, live: LiveTerms | None = None
) -> list[Found]:
    """What each section finds, one after the other; why, where one cannot be measured.

    `live` is what the section of that name is asked for.
    """
    found: list[Found] = []
    for name in sections:
        try:
            more = (live,) if name == "live" else ()
            found.append((name, await module(name).run(effort, *more)))
        except Skipped as reason:
            print(f"{name} is skipped: {reason}", file=sys.stderr, flush=True)
            found.append((name, [Row(name, "", f"skipped: {reason}", None, "")]))
    return found


def module(section: str) -> ModuleType:
    """The module of a section. Raises: `Skipped` when this checkout has none."""
    name = f"evals.reasoning.{section}"
    if find_spec(name) is None:
        raise Skipped(f"there is no {name}")
    return import_module(name)
