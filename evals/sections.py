"""The parts of an evaluation by name. Each is imported when it is asked for, and not before.

A section is a module of the evaluation's package with `rows(quick: bool) -> list[dict]`, each row
with case, system, metric, value and unit. It may have `table(rows: Sequence[Row]) -> str`,
`TARGETS` (what its figures were to reach) and `panel(axes, figures: Lookup) -> None`, which draws
its main figure.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from evals.engine.rows import Row
from evals.planning.effort import Skipped
from evals.reasoning.plot import draw
from evals.reasoning.report import report
from evals.results import environment, title, write_results
from evals.sectioned import arguments

Found = tuple[str, Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Sections:
    """Of the evaluation `name`, the package `evals.NAME`."""

    name: str
    names: tuple[str, ...]

    def main(self, description: str) -> None:
        """Evaluate as the command line says; print the tables; write what was asked for."""
        asked = arguments(self.name, description, self.names)
        found = self.found_by(asked.only, quick=asked.quick)
        about = environment()
        print(f"\n{title(about)}\n")
        print(report(found, self.module))
        if asked.json:
            write_results(asked.json, (row for _, rows in found for row in rows), about)
        if asked.plot and not draw(found, asked.plot, self.module):
            print("nothing was measured that can be drawn", file=sys.stderr)

    def found_by(self, sections: Iterable[str], *, quick: bool) -> list[Found]:
        """What each section finds, one after the other; why, where one cannot be measured."""
        found: list[Found] = []
        for name in sections:
            begun, computed = time.monotonic(), time.process_time()
            try:
                found.append((name, [Row(**row) for row in self.module(name).rows(quick)]))
            except Skipped as reason:
                print(f"{name} is skipped: {reason}", file=sys.stderr, flush=True)
                found.append((name, [Row(name, "", f"skipped: {reason}", None, "")]))
            took, computed = time.monotonic() - begun, time.process_time() - computed
            told = f"{name} took {took:.0f} s, of this process {computed:.0f} s of CPU"
            print(told, file=sys.stderr, flush=True)
        return found

    def module(self, section: str) -> ModuleType:
        """The module of a section. Raises: `Skipped` when this checkout has none."""
        name = f"evals.{self.name}.{section}"
        if find_spec(name) is None:
            raise Skipped(f"there is no {name}")
        return import_module(name)
