"""The worst latency of `/healthz` under each attack: python -m evals.security [--quick]"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from evals.engine.rows import Row
from evals.results import environment, write_results
from evals.security.attacked import Attacked, attacked
from evals.security.attacks import ATTACKS, Attack
from evals.security.target import GRACE_S

LIMIT_MS = 250.0
_END_S = GRACE_S + 6.0  # the server closes connections for up to 5 s after its grace


def main() -> None:
    """Attack, print a table, write the rows."""
    parser = argparse.ArgumentParser(prog="python -m evals.security", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without a local model")
    parser.add_argument("--only", help="attacks whose name has this in it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    asked = parser.parse_args()
    rows: list[Row] = []
    for attack in ATTACKS:
        if (asked.quick and attack.local) or (asked.only and asked.only not in attack.name):
            continue
        figures = list(rows_of(attack, attacked(attack)))
        rows += figures
        told = "  ".join(f"{row.metric} {row.value:g}" for row in figures)
        print(f"{attack.name:24}{attack.kind:8}{told}", flush=True)
    if asked.json:
        write_results(asked.json, rows, environment(limit_ms=f"{LIMIT_MS:g}"))


def rows_of(attack: Attack, found: Attacked) -> Iterator[Row]:
    """What one attack did to its server; `load` is of what else ran on the machine, too."""
    case = re.sub(r"\W+", "_", attack.name)
    held = found.worst_ms <= LIMIT_MS and found.ended_s <= _END_S
    for metric, value, unit in (
        ("status", found.status, "status"),
        ("answers", len(found.latencies_ms), "answers"),
        ("median_ms", round(median(found.latencies_ms), 1), "ms"),
        ("worst_ms", round(found.worst_ms, 1), "ms"),
        ("sigterm_s", round(found.ended_s, 2), "s"),
        ("held", int(held), "yes"),
        ("load", round(os.getloadavg()[0], 1), "load"),
    ):
        yield Row(case, attack.kind, metric, value, unit)


if __name__ == "__main__":
    main()
