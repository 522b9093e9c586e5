"""Draft and target side by side: how much of the time both work, and how much of it is for nothing.

The embedded model's first layers draft for the whole of it, untrained.

    threads_*      its first 10 of 30 layers. They and the target share the cores of this machine:
                   what overlaps also slows the other down
    own_devices_*  the same, played on a virtual clock with the passes' measured times, as if each
                   had a device of its own
    quick_draft_*  on that clock, 28 layers, of which half the tokens are right; the time of a pass
                   is not theirs but said: a sixth of the target's, as of a 7B beside a 70B model

    draft_model   the draft, then the pass, one after the other
    pearl         the draft of the next step while the target reads the last
    llmcad        a tree, and its best path drafted on meanwhile
    pipeinfer     the target in two stages, drafts without end, runs called off early: `pipeinfer`
                  here, and no decoder of the library
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from evals.engine.rows import Lookup, Row
from evals.planning.effort import Effort, Skipped
from evals.speculative.cases import CASES
from evals.speculative.cases.prompt import Prompt
from evals.speculative.pipeinfer.head import Head
from evals.speculative.pipeinfer.pipeline import Pipeline, Threads
from evals.speculative.pipeinfer.pipelined import PipelinedDecoding
from evals.speculative.pipeinfer.recorded import Recorded
from evals.speculative.pipeinfer.simulated import Beside, Costed, Simulated, VirtualClock
from evals.speculative.pipeinfer.stages import NetworkStage, cut
from evals.speculative.pipeinfer.timeline import (
    Interval,
    Timeline,
    busy_s,
    cancelled_tokens,
    drawn,
    overlap_s,
)
from evals.speculative.single import Model
from weft.core.errors import ModelNotFound
from weft.core.ports.clock import SystemClock
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative.drafter import SpeculativeMethod
from weft.decoding.speculative.drafters.model.draft_cache import DraftCache, DraftNetwork
from weft.decoding.speculative.drafters.model.draft_model import DraftModelMethod
from weft.decoding.speculative.drafters.model.llmcad import CascadeMethod
from weft.decoding.speculative.drafters.model.pearl import PearlPacing
from weft.decoding.speculative.drafters.model.pipelined import (
    AdaptiveGamma,
    DraftWorker,
    PipelinedMethod,
    ThreadWorker,
)
from weft.decoding.speculative.loop import DecodeLimits, DecodeLoop
from weft.decoding.speculative.speculation import SpeculativeSequence
from weft.decoding.speculative.target import NetworkTarget
from weft.serving.weights import locate

MODEL: Final = "smollm2-135m-instruct"
_SETUPS: Final = {"threads": (10, False), "own_devices": (10, True), "quick_draft": (28, True)}
"""By name: how many layers draft, and whether the clock is virtual."""
_QUICK: Final = 1 / 6
STAGES: Final = 2
LONGEST: Final = 6
SYSTEMS: Final = ("autoregressive", "draft_model", "pearl", "llmcad", "pipeinfer")
_CASES: Final = ("agent_quoting", "agent_edits")
_SLOTS: Final = 2


@dataclass(frozen=True, slots=True)
class Run:
    """One answer: its tokens, the time it took, and who worked when.

    thrown_away: drafted tokens that the target never read, or whose run was called off.
    """

    tokens: tuple[int, ...]
    seconds: float
    intervals: Sequence[Interval]
    thrown_away: int
    forwards: int

    @property
    def draft(self) -> list[Interval]:
        """What the draft model did."""
        return [kept for kept in self.intervals if kept.who == "draft"]

    @property
    def target(self) -> list[Interval]:
        """What the target did, all stages together."""
        return [kept for kept in self.intervals if kept.who != "draft"]


@dataclass(slots=True)
class Machine:
    """The weights, and how to let things happen: in threads, or on a clock that is told to go on.

    seconds: by tokens what a pass takes, of the draft, of the target and of one of its stages.
    """

    network: Network
    short: Network
    stages: Sequence[NetworkStage]
    draft_s: float = 0.0
    target_s: float = 0.0
    virtual: bool = False
    clock: VirtualClock = field(default_factory=VirtualClock)

    def now(self) -> float:
        """Seconds, of whichever clock."""
        return self.clock.now() if self.virtual else SystemClock().now()

    def cache(self, timeline: Timeline) -> DraftCache:
        """The draft model, with nothing in it."""
        self.short.reset()
        reader: DraftNetwork = self.short
        if self.virtual:
            reader = Costed(self.short, self.clock, lambda _tokens: self.draft_s)
        return DraftCache(reader, self.network.vocabulary_size, timeline)

    def worker(self) -> DraftWorker:
        """Who drafts beside the target."""
        return Beside(self.clock) if self.virtual else ThreadWorker("overlap")

    def pipeline(self, timeline: Timeline) -> Pipeline:
        """The stages, with nothing in them."""
        if not self.virtual:
            return Threads(self.stages, timeline)
        each_s = self.target_s / len(self.stages)
        return Simulated(self.stages, self.clock, lambda _number, _tokens: each_s, timeline)

    def passes(self, _tokens: int) -> None:
        """A pass of the target begins."""
        if self.virtual:
            self.clock.pass_by(self.target_s)


def rows(quick: bool) -> list[dict[str, Any]]:
    """All rows. Raises: `Skipped` where the model is not on this machine."""
    effort = Effort(quick)
    model, machines = _made()
    found: list[Row] = []
    for setup, machine in machines.items():
        found += [
            Row(setup, "draft", "pass_s", machine.draft_s, "s"),
            Row(setup, "target", "pass_s", machine.target_s, "s"),
        ]
        for case in _CASES[: effort.of(1, len(_CASES))]:
            prompts = [prompt for prompt in CASES[case](effort.of(1, 4)) if prompt.free]
            answers = _answers(machine, model, prompts, effort.of(16, 48))
            found += _case_rows(f"{setup}_{case}", answers)
    return [
        {"case": r.case, "system": r.system, "metric": r.metric, "value": r.value, "unit": r.unit}
        for r in found
    ]


def panel(axes: Any, figures: Lookup) -> None:
    """Of each system, how much of the target's time the draft model works too."""
    names = [name for name in SYSTEMS if name != "autoregressive"]
    for shift, setup in enumerate(_SETUPS):
        case = f"{setup}_{_CASES[0]}"
        values = [figures(case, name, "overlap_share") or 0.0 for name in names]
        places = [place + 0.28 * shift for place in range(len(names))]
        axes.bar(places, values, 0.26, label=case)
    axes.set_xticks([place + 0.28 for place in range(len(names))], names)
    axes.set_title("share of the target's time in which the draft works too")
    axes.legend(frameon=False)


def plot(path: Path) -> None:
    """Draw who worked when for the same answer in all systems. Raises: `ImportError`, `Skipped`."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    model, machines = _made()
    prompt = next(prompt for prompt in CASES[_CASES[0]](4) if prompt.free)
    size = (7 * len(machines), 9)
    figure, axes = plt.subplots(
        len(SYSTEMS), len(machines), figsize=size, layout="constrained", sharex="col"
    )
    for column, (setup, machine) in enumerate(machines.items()):
        for line, system in enumerate(SYSTEMS):
            run = _run(system, machine, model.encoded(prompt), 24)
            _bars(axes[line][column], f"{system}, {setup}", run.intervals)
            print(f"{system}, {setup}\n{drawn(run.intervals)}", flush=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _bars(axes: Any, title: str, intervals: Sequence[Interval]) -> None:
    names = sorted({kept.who for kept in intervals}, reverse=True)
    first = min(kept.start_s for kept in intervals)
    for height, name in enumerate(names):
        for what, colour in (("useful", "tab:green"), ("cancelled", "tab:red")):
            bars = [
                (kept.start_s - first, kept.end_s - kept.start_s)
                for kept in intervals
                if kept.who == name and kept.what == what
            ]
            axes.broken_barh(bars, (height - 0.4, 0.8), color=colour, edgecolor="white")
    axes.set_yticks(range(len(names)), names)
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("s")


def _made() -> tuple[Model, Mapping[str, Machine]]:
    try:
        model = Model(locate(MODEL), dtype="float32")
    except ModelNotFound as missing:
        raise Skipped(str(missing)) from missing
    network = model.network
    stages, target_s = cut(network, STAGES), _pass_s(network)
    machines = {}
    for name, (layers, virtual) in _SETUPS.items():
        short = network.share(layers=layers)
        draft_s = target_s * _QUICK if name == "quick_draft" else _pass_s(short)
        machines[name] = Machine(network, short, stages, draft_s, target_s, virtual)
    return model, machines


def _pass_s(network: Network) -> float:
    """What a pass over one token takes, behind a hundred others."""
    network.forward([Span(0, range(100), range(1000, 1100), 0)])
    taken = []
    for _ in range(12):
        begun = time.perf_counter()
        network.forward([Span(0, (100,), (500,), 1)])
        taken.append(time.perf_counter() - begun)
    return median(taken)


def _answers(
    machine: Machine, model: Model, prompts: Sequence[Prompt], most: int
) -> Iterator[dict[str, Run]]:
    """Of every prompt the answers of all systems, which take turns in going first."""
    for number, prompt in enumerate(prompts):
        print(f"overlap {prompt.id}", file=sys.stderr, flush=True)
        shift = number % len(SYSTEMS)
        tokens = model.encoded(prompt)
        yield {
            name: _run(name, machine, tokens, most) for name in (*SYSTEMS[shift:], *SYSTEMS[:shift])
        }


def _case_rows(case: str, answers: Iterator[dict[str, Run]]) -> Iterator[Row]:
    prompts = list(answers)
    for system in SYSTEMS:
        runs = [answer[system] for answer in prompts]
        plain = [answer["autoregressive"] for answer in prompts]
        tokens = sum(len(run.tokens) for run in runs)
        target = sum(busy_s(run.target) for run in runs)
        both = sum(overlap_s(run.draft, run.target) for run in runs)
        same = [run.tokens == other.tokens for run, other in zip(runs, plain, strict=True)]
        ratios = [other.seconds / run.seconds for run, other in zip(runs, plain, strict=True)]
        lost = sum(cancelled_tokens(run.draft) for run in runs)
        yield Row(case, system, "identical_outputs", sum(same) / len(same), "share")
        yield Row(case, system, "overlap_share", both / target, "share")
        yield Row(case, system, "cancelled_tokens", sum(r.thrown_away for r in runs), "tokens")
        yield Row(case, system, "drafted_in_vain", lost, "tokens")
        yield Row(case, system, "tokens", tokens, "tokens")
        forwards = sum(run.forwards for run in runs)
        yield Row(case, system, "tokens_per_target_forward", tokens / forwards, "tokens")
        yield Row(case, system, "wall_ratio", median(ratios), "x")


def _run(system: str, machine: Machine, prompt: Sequence[int], most: int) -> Run:
    machine.clock.set(0.0)
    timeline = Timeline(machine.now)
    limits = DecodeLimits(most, machine.network.generation.end_ids)
    begun = machine.now()
    if system == "pipeinfer":
        return _pipelined(machine, timeline, prompt, limits, begun)
    method = _method(system, machine, timeline)
    target = NetworkTarget(machine.network, SamplingParams(0.0), _SLOTS - 1)
    for _ in target.begin(prompt):
        machine.passes(0)
    speculation = SpeculativeSequence(method, machine.network.vocabulary_size)
    speculation.extend(prompt)
    recorded = Recorded(target, timeline, machine.passes)
    decoding = DecodeLoop(recorded, speculation, CounterRng(0), limits)
    tokens = tuple(token for step in decoding for token in step)
    assert speculation.fallback is None, speculation.fallback
    seconds = machine.now() - begun
    method.close()
    thrown = getattr(method, "thrown_away", 0)
    return Run(tokens, seconds, timeline.intervals, thrown, decoding.counters.forwards)


def _pipelined(
    machine: Machine, timeline: Timeline, prompt: Sequence[int], limits: DecodeLimits, begun: float
) -> Run:
    head = Head(prompt, SamplingParams(0.0), CounterRng(0), limits, lanes=3)
    decoding = PipelinedDecoding(head, machine.pipeline(timeline), machine.cache(timeline))
    with closing(decoding):
        tokens = tuple(token for step in decoding for token in step)
        seconds = machine.now() - begun
    thrown = head.cancelled.tokens
    return Run(tokens, seconds, timeline.intervals, thrown, head.counters.forwards)


def _method(system: str, machine: Machine, timeline: Timeline) -> SpeculativeMethod:
    cache, words = machine.cache(timeline), machine.network.vocabulary_size
    gamma = AdaptiveGamma(3, LONGEST, machine.now)
    if system == "pearl":
        return PipelinedMethod(
            system, cache, machine.worker(), gamma, PearlPacing(), machine.now, LONGEST
        )
    if system == "llmcad":
        return CascadeMethod(system, cache, machine.worker(), gamma, machine.now, LONGEST)
    most = 0 if system == "autoregressive" else LONGEST
    return DraftModelMethod(system, cache, words, most, confidence=0.4)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draw who works when.")
    parser.add_argument("--plot", type=Path, default=Path("overlap.png"))
    plot(parser.parse_args().plot)
