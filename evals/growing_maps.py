"""`python -m evals.growing_maps [--quick] [--json FILE]`: a map that grows finds faults in data.

A flow cleans the 2,240 invoice lines of Chinook, as texts, and joins them with the tracks. Eight
faults are planted, one at a time. `grow` does a sample first and asks about its results before it
does more; `all at once` does all rows, and then asks the same about the whole. Rows are what costs.

rows         rows that were cleaned until the run ended, the median over seeds
found        runs that failed with the fault, or in the case `clean` with a false alarm, per cent
found_early  runs that failed before all rows were done, per cent
"""

from __future__ import annotations

import argparse
import random
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any, Final

import weft
from evals.engine.rows import Row
from evals.planning.data import folder
from evals.results import environment, title, write_results

Line = dict[str, str]
COLUMNS: Final = ("line", "track", "price", "quantity")
EXPECT: Final[Mapping[str, str]] = {
    "keys are unique": "{{ value | map(attribute='line') | unique | list | length"
    " == value | length }}",
    "prices are between 0.5 and 3": "{{ value | map(attribute='price') | min >= 0.5"
    " and value | map(attribute='price') | max <= 3 }}",
    "quantities are between 1 and 10": "{{ value | map(attribute='quantity') | min >= 1"
    " and value | map(attribute='quantity') | max <= 10 }}",
    "at most 1 % of the tracks are unknown": "{{ value | rejectattr('known') | list | length * 100"
    " <= value | length }}",
}
GROW: Final = {
    "first": 5,
    "factor": 4,
    "accept": "{{ " + " and ".join(f"({text[3:-3]})" for text in EXPECT.values()) + " }}",
}


def lines() -> tuple[list[Line], frozenset[str]]:
    """Invoice lines as texts, and the keys of all tracks. Raises: `Skipped` without the data."""
    path = folder("programs/text2sql/db") / "chinook.sqlite"
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as base:
        query = "SELECT InvoiceLineId, TrackId, UnitPrice, Quantity FROM InvoiceLine ORDER BY 1"
        found = [dict(zip(COLUMNS, map(str, row), strict=True)) for row in base.execute(query)]
        tracks = frozenset(str(key) for (key,) in base.execute("SELECT TrackId FROM Track"))
    return found, tracks


def _some(rows: Sequence[Line], share: float, change: Callable[[Line], Mapping[str, str]]) -> None:
    chosen = random.Random("faults").sample(rows, round(len(rows) * share))
    for row in chosen:
        row |= change(row)


def _late(rows: Sequence[Line], first: int, change: Callable[[Line], Mapping[str, str]]) -> None:
    for row in rows[first:]:
        row |= change(row)


FAULTS: Final[Mapping[str, Callable[[list[Line]], None]]] = {
    "clean": lambda _: None,
    "cents from row 900 on": lambda rows: _late(
        rows, 900, lambda row: {"price": str(float(row["price"]) * 100)}
    ),
    "decimal commas, a third": lambda rows: _some(
        rows, 1 / 3, lambda row: {"price": row["price"].replace(".", "")}
    ),
    "lost quantities, 10 %": lambda rows: _some(rows, 0.1, lambda _: {"quantity": "0"}),
    "unknown tracks, 5 %": lambda rows: _some(
        rows, 0.05, lambda row: {"track": f"x{row['track']}"}
    ),
    "doubled keys, 5 %": lambda rows: _some(rows, 0.05, lambda _: {"line": rows[0]["line"]}),
    "shifted columns in the last 200": lambda rows: _late(
        rows, len(rows) - 200, lambda row: {"price": row["quantity"], "quantity": row["track"]}
    ),
    "negative quantities, 1 %": lambda rows: _some(
        rows, 0.01, lambda row: {"quantity": f"-{row['quantity']}"}
    ),
    "one price too high": lambda rows: _late(rows, len(rows) - 1, lambda _: {"price": "990"}),
}


def measure(fault: str, seed: int | None) -> tuple[int, bool]:
    """Rows cleaned until the end, and whether the run failed. No seed: all at once."""
    rows, tracks = lines()
    FAULTS[fault](rows)
    cleaned = 0

    @weft.tool(pure=True)
    def clean(row: dict[str, str]) -> dict[str, Any]:
        """A line with numbers, and whether its track is known."""
        nonlocal cleaned
        cleaned += 1
        return {
            "line": row["line"],
            "price": float(row["price"]),
            "quantity": int(row["quantity"]),
            "known": row["track"] in tracks,
        }

    flow = weft.Flow("clean")
    read = flow.input("rows", list[dict[str, str]])
    grow = None if seed is None else {**GROW, "seed": seed}
    flow.output(
        r=flow.map(read, lambda row: flow.tool(clean, row=row), grow=grow, expect=dict(EXPECT))
    )
    result = flow.run_sync(rows=rows, durability="none")
    return cleaned, result.status != "succeeded"


def rows_of(*, quick: bool = False) -> list[Row]:
    """Each fault by each system."""
    rows = []
    for fault in FAULTS:
        seeds: Mapping[str, Sequence[int | None]] = {
            "all at once": [None],
            "grow": range(5 if quick else 20),
        }
        for system, each in seeds.items():
            runs = [measure(fault, seed) for seed in each]
            total = len(lines()[0])
            early = [failed and done < total for done, failed in runs]
            rows += [
                Row(fault, system, "rows", median(done for done, _ in runs), "rows"),
                Row(fault, system, "found", 100 * _share([bad for _, bad in runs]), "%"),
                Row(fault, system, "found_early", 100 * _share(early), "%"),
            ]
    return rows


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m evals.growing_maps", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="5 seeds instead of 20")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    rows, about = rows_of(quick=asked.quick), environment()
    print(f"\n{title(about)}\n")
    for row in rows:
        print(f"{row.case:<32} {row.system:<12} {row.metric:<12} {row.value:8.1f} {row.unit}")
    if asked.json:
        write_results(asked.json, rows, about)


if __name__ == "__main__":
    main()
