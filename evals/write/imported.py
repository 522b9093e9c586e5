"""WorkflowBench's samples as weft documents: how many `weft check` accepts, what control flow."""

from __future__ import annotations

import ast
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evals.planning.workflowbench import Imported, counted, import_sample, load_samples
from weft.core.errors import BuildError
from weft.workflow.runtime.compiled import check_file


@dataclass(frozen=True, slots=True)
class CheckedImport:
    """An imported sample in a folder of its own; `defects`: what `weft check` says of it."""

    made: Imported
    file: Path
    defects: tuple[str, ...]


SHORT: Final = 15_000
"""Documents of at most so many characters are also spoilt, repaired and written anew."""


def imports(folder: Path, most: float = math.inf) -> Iterator[CheckedImport]:
    """Samples whose text has at most so many characters, checked in folders below `folder`."""
    for sample in load_samples():
        made = import_sample(sample)
        if len(made.text) > most:
            continue
        file = made.write(folder / str(sample.number))
        try:
            check_file(file)
        except BuildError as error:
            yield CheckedImport(made, file, tuple(map(str, error.defects)))
        else:
            yield CheckedImport(made, file, ())


def rows(quick: bool) -> list[dict[str, Any]]:
    """Shares over the samples; where it is `quick`, over the short ones."""
    with tempfile.TemporaryDirectory() as folder:
        found = list(imports(Path(folder), SHORT if quick else math.inf))
    flows = [(each.made.kept, counted(each.made.sample.code)) for each in found]
    kept = [made == real for made, real in flows]
    figures: list[tuple[str, float, str]] = [
        ("samples", len(found), "samples"),
        ("python", sum(_parses(each.made.sample.code) for each in found), "samples"),
        ("accepted", sum(not each.defects for each in found) / len(found), "share"),
        ("flow_kept", sum(kept) / len(kept), "share"),
    ]
    for name in ("calls", "branches", "loops"):
        figures.append((f"{name}_in", sum(getattr(real, name) for _, real in flows), name))
        figures.append((f"{name}_out", sum(getattr(made, name) for made, _ in flows), name))
    return [
        {
            "case": "workflowbench",
            "system": "importer",
            "metric": name,
            "value": value,
            "unit": unit,
        }
        for name, value, unit in figures
    ]


def _parses(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        return False
    return True
