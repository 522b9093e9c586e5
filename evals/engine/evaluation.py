"""The order of the evaluation; computes no figure itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from evals.engine import peers
from evals.engine.cases import CASES
from evals.engine.first_run import FIRST_RUN, VERSION, first_runs, version
from evals.engine.growth import Growth
from evals.engine.rounds import Pace, measure
from evals.engine.rows import Row, growth_rows, timing_rows
from evals.engine.systems import SYSTEMS

ALL: Final = (*CASES, FIRST_RUN, VERSION)
_LARGE: Final = "layered_10000"
_NAMED: Final = ("langgraph", "pydantic-graph", "apache-hamilton", "dbos")


@dataclass(frozen=True, slots=True)
class Effort:
    """How often to repeat; `large`: also the case that no system runs quickly."""

    pace: Pace
    fresh: Pace
    large: bool


FULL: Final = Effort(
    Pace(seconds=60.0, least=7, most=100, limit_s=90.0),
    Pace(seconds=60.0, least=7, most=20, limit_s=90.0),
    large=True,
)
QUICK: Final = Effort(
    Pace(seconds=6.0, least=3, most=30, limit_s=20.0),
    Pace(seconds=6.0, least=3, most=10, limit_s=20.0),
    large=False,
)


class Evaluation:
    """One evaluation. `run` fills `rows`."""

    def __init__(self, effort: Effort) -> None:
        self.rows: list[Row] = []
        self._effort = effort

    def run(self, cases: Iterable[str] = ALL) -> None:
        """Measure one case after the other."""
        for case in cases:
            _say(f"measuring {case}")
            if case == _LARGE and not self._effort.large:
                self.rows.append(Row(case, "", "skipped: not timed with --quick", None, ""))
            else:
                self.rows += self._measured(case)
            if case == _LARGE:
                self.rows += _grown()

    def _measured(self, case: str) -> list[Row]:
        if case == FIRST_RUN:
            return timing_rows(first_runs(self._effort.fresh))
        if case == VERSION:
            return timing_rows(version(self._effort.fresh))
        return timing_rows(measure(case, list(SYSTEMS), self._effort.pace))


def peer_versions() -> dict[str, str]:
    """Of the peers, as they are pinned."""
    pins = peers.versions("peers")
    return {
        **{name: pins[name] for name in _NAMED},
        "prefect": peers.versions("prefect")["prefect"],
    }


def _grown() -> list[Row]:
    with TemporaryDirectory(prefix="weft-") as scratch:
        ended = subprocess.run(
            [sys.executable, "-m", "evals.engine.growth"],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            cwd=peers.ROOT,
            env=peers.environment(Path(scratch)),
        )
    return growth_rows(Growth(**json.loads(ended.stdout)))


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)
