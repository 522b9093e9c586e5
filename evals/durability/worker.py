"""One system with one case in a process of its own: a run for every line it reads.

`python -m evals.durability.worker SYSTEM CASE FOLDER`; writes a line of JSON for each, the first
when it is ready. "bytes" is asked for by that word.
"""

from __future__ import annotations

import gc
import json
import sqlite3
import sys
from pathlib import Path

from evals.durability.systems import load


def main() -> None:
    """Serve until stdin ends."""
    system, case, where = sys.argv[1:]
    folder = Path(where)
    try:
        served = load(system, case, folder)
        served.run()
    except ImportError as error:
        print(json.dumps({"error": f"not installed: {error}"}), flush=True)
        return
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        if line.strip() == "bytes":
            print(json.dumps({"bytes": stored_bytes(folder)}), flush=True)
        else:
            gc.collect()
            print(json.dumps({"ms": served.run() * 1e3}), flush=True)
    served.close()


def stored_bytes(folder: Path) -> int:
    """The pages in use of all databases in `folder`."""
    total = 0
    for path in folder.glob("*.sqlite"):
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA wal_checkpoint(FULL)")
            pages, free, size = (
                database.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
        database.close()
        total += (pages - free) * size
    return total


if __name__ == "__main__":
    main()
