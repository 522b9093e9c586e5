"""`python -m evals.optimise.kills [--studies N] [--kills N]`: studies that are killed and resumed.

Each is killed at random moments, resumed, and compared with one that was left alone: the same
result, and nothing that had finished done again. Prints how many of the deaths were survived.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Kill and resume; stop at the first study that differs."""
    from tests.optimisation.test_study import survives

    parser = argparse.ArgumentParser(description="Studies that are killed and resumed.")
    parser.add_argument("--studies", type=int, default=50, help="studies")
    parser.add_argument("--kills", type=int, default=4, help="deaths of each")
    asked = parser.parse_args()
    for seed in range(asked.studies):
        with tempfile.TemporaryDirectory() as folder:
            survives(Path(folder), 1_000 + seed, asked.kills)
        print(f"study {seed + 1} of {asked.studies}", file=sys.stderr, flush=True)
    deaths = asked.studies * asked.kills
    print(f"{deaths} deaths in {asked.studies} studies: the same result, no finished call repeated")


if __name__ == "__main__":
    main()
