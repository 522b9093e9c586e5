"""Samplers and votes over recorded samples of Qwen3-8B: accuracy, tokens, critical path.

The samplers are those that run live. Draws as in the reference figures: 8 shuffles of the 128
samples of each problem by one stream of `random.Random(0)` over AIME24, AIME25 and HMMT25 in this
order, of which the first 64 are used; where a set is not at hand, its draws are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

from evals.engine.rows import Lookup, Row
from evals.planning.data import load
from evals.planning.effort import Effort, Skipped
from evals.reasoning.report import Target
from evals.reasoning.sampler_replay import RecordedSample, ReplayResult, replay
from weft.reasoning.samplers.adaptive import AdaptiveSampler
from weft.reasoning.samplers.early_stopping import EarlyStoppingSampler
from weft.reasoning.samplers.fixed import FixedSampler
from weft.reasoning.samplers.parallel_probe import ParallelProbeSampler
from weft.reasoning.samplers.sampler import MakeSampler
from weft.reasoning.samplers.saturation import SaturationSampler
from weft.reasoning.samplers.shortest import ShortestSampler
from weft.reasoning.selection.vote import Tally, Vote, count_votes, shortest_majority

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SETS: Final = ("aime24", "aime25", "hmmt25")
_PROBLEMS: Final = 30
_SHUFFLES: Final = 8
_USED: Final = 64

VoteRule = Callable[[Sequence[Vote]], Sequence[Tally]]


@dataclass(frozen=True, slots=True)
class System:
    """A sampler, and the vote over what it leaves."""

    make: MakeSampler
    vote: VoteRule = count_votes


def _first_seen(votes: Sequence[Vote]) -> Sequence[Tally]:
    return count_votes(votes, "first")


def systems_of(n: int) -> Mapping[str, System]:
    """The systems that start at most `n` samples."""
    return {
        "fixed": System(lambda: FixedSampler(n)),
        "fixed_first_seen": System(lambda: FixedSampler(n), _first_seen),
        "cancel_decided": System(lambda: FixedSampler(n, cancel_decided=True)),
        "smv": System(lambda: FixedSampler(n), shortest_majority),
        "short1": System(lambda: ShortestSampler(n, 1)),
        "short3": System(lambda: ShortestSampler(n, 3)),
        "asc": System(lambda: AdaptiveSampler(n)),
        "asc_waves": System(lambda: AdaptiveSampler(n, wave=8)),
        "esc": System(lambda: EarlyStoppingSampler(n, 8)),
        "saturating": System(lambda: SaturationSampler(n)),
        "probe": System(lambda: ParallelProbeSampler(n)),
    }


@dataclass(frozen=True, slots=True)
class Draw:
    """The samples of one problem in one order, and its true answer."""

    problem: int
    gold: str
    samples: tuple[RecordedSample, ...]


@dataclass(slots=True)
class Figures:
    """Sums over draws."""

    draws: int = 0
    right: int = 0
    total_tokens: int = 0
    cancelled_tokens: int = 0
    critical_path_tokens: int = 0
    samples: int = 0

    def add(self, done: ReplayResult, right: bool) -> None:
        """One more draw."""
        self.draws += 1
        self.right += right
        self.total_tokens += done.total_tokens
        self.cancelled_tokens += done.cancelled_tokens
        self.critical_path_tokens += done.critical_path_tokens
        self.samples += len(done.pool.branches)


async def run(effort: Effort) -> list[Row]:
    """Every system on every set that is at hand. `quick` leaves out those with 64 probed samples.

    Raises: `Skipped` when there are no traces at all.
    """
    drawn = draws()
    rows: list[Row] = []
    for name, found in drawn.items():
        for n in (16, _USED):
            figures = {
                system: figures_of(made, found)
                for system, made in systems_of(n).items()
                if not (effort.quick and n == _USED and system == "probe")
            }
            rows += _rows(f"{name}_sc{n}", figures, changed_votes(found, n))
        alone = {"fixed": figures_of(System(lambda: FixedSampler(1)), found)}
        rows += _rows(f"{name}_sc1", alone, 0)
    return rows


def draws() -> dict[str, list[Draw]]:
    """The draws of each set that is at hand. Raises: `Skipped` when none is."""
    stream = Random(0)
    found: dict[str, list[Draw]] = {}
    missing: Skipped | None = None
    for name in _SETS:
        try:
            problems = load(f"reasoning/traces_qwen3_8b_{name}.json")
        except Skipped as reason:
            missing = reason
            for _ in range(_PROBLEMS * _SHUFFLES):
                stream.shuffle([None] * 128)
            continue
        found[name] = list(_of_set(problems, stream))
    if not found and missing is not None:
        raise missing
    return found


def changed_votes(drawn: Sequence[Draw], n: int) -> int:
    """On how many of `drawn` the vote with cancellation has another winner than the full vote."""
    changed = 0
    for draw in drawn:
        full = _winner(replay(FixedSampler(n), draw.samples), count_votes)
        cut = _winner(replay(FixedSampler(n, cancel_decided=True), draw.samples), count_votes)
        changed += full != cut
    return changed


def _of_set(problems: Sequence[Any], stream: Random) -> Iterator[Draw]:
    for number, problem in enumerate(problems):
        for _ in range(_SHUFFLES):
            branches = list(problem["branches"])
            stream.shuffle(branches)
            samples = tuple(_recorded(branch) for branch in branches[:_USED])
            yield Draw(number, str(problem["gold"]), samples)


def _recorded(branch: Mapping[str, Any]) -> RecordedSample:
    return RecordedSample(str(branch["final"]), branch["len"], tuple(map(str, branch["probes"])))


def _winner(done: ReplayResult, vote: VoteRule) -> str | None:
    voters = done.stop.voters
    chosen = done.pool.ended if voters is None else [done.pool.branches[i] for i in voters]
    tallies = vote([Vote(b.index, b.opinion, b.tokens) for b in chosen if b.opinion])
    return tallies[0].key if tallies else None


def figures_of(system: System, drawn: Sequence[Draw]) -> Figures:
    """How `system` fares on all of `drawn`."""
    figures = Figures()
    for draw in drawn:
        done = replay(system.make(), draw.samples)
        figures.add(done, _winner(done, system.vote) == draw.gold)
    return figures


def _rows(case: str, systems: Mapping[str, Figures], changed: int) -> list[Row]:
    rows: list[Row] = []
    full = systems["fixed"]
    for system, found in systems.items():
        means = {
            "total_tokens": found.total_tokens,
            "cancelled_tokens": found.cancelled_tokens,
            "critical_path_tokens": found.critical_path_tokens,
        }
        rows.append(Row(case, system, "accuracy", found.right / found.draws, "share"))
        rows += [Row(case, system, m, v / found.draws, "tokens") for m, v in means.items()]
        rows.append(Row(case, system, "samples", found.samples / found.draws, "samples"))
        rows.append(Row(case, system, "draws", found.draws, "draws"))
        cut = 1 - found.critical_path_tokens / full.critical_path_tokens
        rows.append(Row(case, system, "critical_path_cut", cut, "share"))
    if "cancel_decided" in systems:
        rows.append(Row(case, "cancel_decided", "changed_votes", changed, "draws"))
    return rows


TARGETS: Final = (
    Target("aime24_sc16", "cancel_decided", "critical_path_cut", 0.35),
    Target("aime24_sc16", "cancel_decided", "changed_votes", 0, at_most=True),
    Target("aime24_sc16", "cancel_decided", "accuracy", 0.812),
)
"""Done when: the cancelled vote is the same vote, at least 35 % sooner."""

_SAME_COST: Final = ("fixed_first_seen", "smv")
_COLUMNS: Final = (
    ("accuracy", "accuracy", ".3f"),
    ("critical path", "critical_path_tokens", ",.0f"),
    ("cut", "critical_path_cut", ".1%"),
    ("total tokens", "total_tokens", ",.0f"),
    ("cancelled", "cancelled_tokens", ",.0f"),
    ("samples", "samples", ".1f"),
)


def table(rows: Sequence[Row]) -> str:
    """One block for each case, one line for each system."""
    figures = Lookup(rows)
    lines: list[str] = []
    for case in dict.fromkeys(row.case for row in rows):
        lines.append(f"{case:20}" + "".join(f"{name:>16}" for name, _, _ in _COLUMNS))
        systems = dict.fromkeys(row.system for row in rows if row.case == case)
        lines += [f"  {system:18}{_cells(figures, case, system)}" for system in systems] + [""]
    return "\n".join(lines).rstrip()


def _cells(figures: Lookup, case: str, system: str) -> str:
    values = ((figures(case, system, metric), spec) for _, metric, spec in _COLUMNS)
    return "".join(f"{'-' if v is None else format(v, spec):>16}" for v, spec in values)


def panel(axes: Axes, figures: Lookup) -> None:
    """Critical path and total tokens of each system on AIME24, with its accuracy."""
    case = "aime24_sc16"
    paths = {s: figures(case, s, "critical_path_tokens") for s in systems_of(16)}
    known = sorted((path, s) for s, path in paths.items() if path and s not in _SAME_COST)
    systems = [system for _, system in reversed(known)]
    totals = [(figures(case, s, "total_tokens") or 0.0) / 1000 for s in systems]
    axes.barh(systems, totals, 0.8, color="#c4cbd8", label="total")
    colours = ["#0b6e4f" if s == "cancel_decided" else "#5b7db1" for s in systems]
    ahead = [(paths[s] or 0.0) / 1000 for s in systems]
    axes.barh(systems, ahead, 0.5, color=colours, label="critical path")
    for place, system in enumerate(systems):
        accuracy = figures(case, system, "accuracy") or 0.0
        axes.annotate(
            f"{accuracy:.3f}", (totals[place], place), (4, -3), textcoords="offset points"
        )
    axes.set_xscale("log")
    axes.set_xlim(4, 700)
    axes.set_xlabel("thousand tokens a problem; at the end of a bar, accuracy")
    axes.set_title("16 samples of Qwen3-8B on AIME24")
    axes.legend(frameon=False, fontsize=8)
