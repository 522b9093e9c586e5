"""The worst latency of `/healthz` under each attack: python -m evals.security [--quick]"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from statistics import median

from evals.sectioned import surroundings
from evals.security.attacked import attacked
from evals.security.attacks import ATTACKS
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
    rows = []
    for attack in ATTACKS:
        if (asked.quick and attack.local) or (asked.only and asked.only not in attack.name):
            continue
        found = attacked(attack)
        row = {
            "attack": attack.name,
            "server": attack.kind,
            "status": found.status,
            "answers": len(found.latencies_ms),
            "median_ms": round(median(found.latencies_ms), 1),
            "worst_ms": round(found.worst_ms, 1),
            "sigterm_s": round(found.ended_s, 2),
            "held": found.worst_ms <= LIMIT_MS and found.ended_s <= _END_S,
        }
        row["load"] = round(os.getloadavg()[0], 1)  # of what else ran on the machine, too
        rows.append(row)
        print("  ".join(f"{value!s:>8}" for value in row.values()), flush=True)
    if asked.json:
        about = {**surroundings(), "limit_ms": LIMIT_MS, "rows": rows}
        asked.json.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
