"""What every shipped model was trained on, so that no test asks for it. Trains nothing.

The record lies beside the weights. Problems are drawn from seeds, so a record of seeds is a record
of problems: they are drawn again here, and compared with those of a test one by one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from evals.reasoning.countdown.problem import Key, Problem, Range, problems, read_problems
from evals.reasoning.countdown.sequences import SMALL, development_problems

RECORD: Final = Path(__file__).parent / "weights" / "training_record.json"
TEST_FILE: Final = Path(__file__).parent / "test_problems.jsonl"
TEST_SEED: Final = 999_000_000
TEST_PROBLEMS: Final = 1000


class Overlap(ValueError):
    """A test asks for what some model was trained on."""


def unseen_problems(count: int = TEST_PROBLEMS) -> list[Problem]:
    """The first `count` problems of the committed test set."""
    return read_problems(TEST_FILE)[:count]


HELD_OUT: Final[Mapping[str, Callable[[], Iterable[Problem]]]] = {
    "development": development_problems,
    "test": unseen_problems,
}
"""Problems that training leaves out, by the name under which a record says so."""


@lru_cache
def _held_out(name: str) -> frozenset[Key]:
    return frozenset(problem.key for problem in HELD_OUT[name]())


def held_out_keys(names: Iterable[str]) -> frozenset[Key]:
    """The keys of the problems that `names` stand for."""
    return frozenset().union(*map(_held_out, names))


@lru_cache(maxsize=1024)
def _drawn_keys(seed: int, count: int, within: Range, held_out: tuple[str, ...]) -> frozenset[Key]:
    """What a run drew of one seed; runs share seeds."""
    without = held_out_keys(held_out)
    return frozenset(problem.key for problem in problems(seed, count, within, without))


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """One training: `problems_per_seed` problems of each seed from `first_seed` to `last_seed`.

    `start` names the run whose weights it began with; `held_out` what its problems left out.
    """

    name: str
    material: str
    tokens: int
    first_seed: int
    last_seed: int
    problems_per_seed: int
    held_out: tuple[str, ...]
    start: str | None = None
    sha256: str | None = None
    note: str = ""

    @property
    def seeds(self) -> range:
        """All its seeds."""
        return range(self.first_seed, self.last_seed + 1)

    def keys(self, within: Range) -> frozenset[Key]:
        """The problems that it drew."""
        of_seeds = (
            _drawn_keys(seed, self.problems_per_seed, within, self.held_out) for seed in self.seeds
        )
        return frozenset().union(*of_seeds)


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """All runs behind the shipped weights."""

    runs: tuple[TrainedRun, ...]
    within: Range = SMALL

    @classmethod
    def read(cls, path: Path = RECORD) -> TrainingRecord:
        """The record in `path`."""
        kept: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
        runs = ({**run, "held_out": tuple(run["held_out"])} for run in kept["runs"])
        return cls(tuple(TrainedRun(**run) for run in runs), Range(**kept["within"]))

    def write(self, path: Path = RECORD) -> None:
        """Keep it in `path`."""
        kept = {"within": asdict(self.within), "runs": [asdict(run) for run in self.runs]}
        path.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")

    def with_run(self, run: TrainedRun) -> TrainingRecord:
        """The record with `run` in the place of the one of its name."""
        others = tuple(other for other in self.runs if other.name != run.name)
        return TrainingRecord((*others, run), self.within)

    def keys(self) -> frozenset[Key]:
        """All problems that any run drew."""
        return frozenset().union(*(run.keys(self.within) for run in self.runs))

    def refuse_overlap(self, test: Sequence[Problem], seed: int | None = None) -> None:
        """Raises: `Overlap` when a run drew from `seed`, or drew one of the problems."""
        for run in self.runs:
            if seed is not None and seed in run.seeds:
                raise Overlap(f"{run.name} was trained on problems of seed {seed}")
            drawn = run.keys(self.within)
            if known := [problem for problem in test if problem.key in drawn]:
                raise Overlap(
                    f"{run.name} was trained on {len(known)} of {len(test)} test problems, "
                    f"{known[0]} among them"
                )

    def fresh_problems(self, count: int = TEST_PROBLEMS, seed: int = TEST_SEED) -> list[Problem]:
        """So many problems that no run drew and that are no development problems."""
        without = self.keys() | held_out_keys(["development"])
        return list(problems(seed, count, self.within, without))


def main() -> None:
    """Draw the test set anew for the weights that are shipped, and keep it."""
    drawn = TrainingRecord.read().fresh_problems()
    lines = (json.dumps({"nums": each.numbers, "target": each.target}) for each in drawn)
    TEST_FILE.write_text("".join(f"{line}\n" for line in lines), "utf-8")


if __name__ == "__main__":
    main()
