"""The order of the evaluation: servers, rounds and cases. Computes no figure itself."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evals.engine.rows import Row
from evals.serving import single_calls
from evals.serving.programs import Program
from evals.serving.prose import prose_of
from evals.serving.replay import Played, play
from evals.serving.rows import CASE, figures, latency_rows, round_rows
from evals.serving.server import Server, serving
from evals.serving.speed import Speed, measure
from evals.serving.systems.catalogue import ALONE, MAIN, SYSTEMS, WITHOUT, client
from evals.serving.traffic import Traffic

FIRST_SEED = 40
"""Seeds below were seen while the client and the traffic were tuned, and are no evidence."""


@dataclass(frozen=True, slots=True)
class Case:
    """How much is offered.

    `load`: work offered a second, as a multiple of what the server does in a second at its measured
    speed. `programs`: how many, as a share of those of the effort.
    """

    name: str
    load: float
    programs: float


SATURATED = Case(CASE, 3.0, 1.0)
"""The queue grows for as long as programs arrive, and is worked off afterwards."""
UNSATURATED = Case(f"{CASE}_unsaturated", 1.5, 0.75)
"""So few programs are under way at once that a server which batches has no queue to speak of."""
CASES = (SATURATED, UNSATURATED)


@dataclass(frozen=True, slots=True)
class Effort:
    """Programs in a trace; rounds of the main systems; which other systems are tried.

    Systems without one mechanism (`ablation`) or with only one (`alone`) are played in the first
    round of the saturated case. Systems asked for by name are played whatever this says.
    """

    programs: int
    rounds: int
    ablation: bool
    alone: bool


FULL = Effort(programs=64, rounds=5, ablation=True, alone=True)
QUICK = Effort(programs=32, rounds=2, ablation=False, alone=False)


class Evaluation:
    """One evaluation of the weights in the folder `model`. `run` fills `rows`.

    `only` names the systems to play; without names, all of them.
    """

    def __init__(self, model: Path, effort: Effort, dtype: str, only: Sequence[str] = ()) -> None:
        self.rows: list[Row] = []
        self._model = model
        self._effort = effort
        self._dtype = dtype
        self._only = only
        self._prose = prose_of(model)
        self._traffic = Traffic(self._prose)

    async def run(self) -> None:
        """Transformers first, while nothing else is on the machine; then one server for all.

        Raises: `EvaluationError`.
        """
        calls = single_calls.chats(self._traffic)
        _say("single calls with transformers")
        seconds = dict(single_calls.with_transformers(self._model, self._dtype, calls))
        with serving(self._model, dtype=self._dtype) as server:
            _say("single calls with vLLM")
            seconds |= await single_calls.with_vllm(server, calls)
            self.rows += single_calls.rows(calls, seconds)
            speed = await self._speed(server)
            for case in CASES:
                rounds = await self._rounds(server, case, speed)
                self.rows += round_rows(case.name, rounds)
                if case is SATURATED:
                    self.rows += latency_rows([_main(one) for one in rounds])

    async def _rounds(self, server: Server, case: Case, speed: Speed) -> list[Mapping[str, Played]]:
        """All systems of a round get the same trace; they take turns at going first."""
        rounds: list[Mapping[str, Played]] = []
        for number in range(self._effort.rounds):
            trace = self.trace(case, FIRST_SEED + number, speed)
            played: dict[str, Played] = {}
            for name in self._systems(case, number):
                _say(f"{case.name}, round {number + 1} of {self._effort.rounds}: {name}")
                played[name] = await play(trace, SYSTEMS[name](server), server)
                _say("    " + _brief(played[name]))
            rounds.append(played)
        return rounds

    def trace(self, case: Case, seed: int, speed: Speed) -> list[Program]:
        """The programs of `seed`, offered as fast as `case` says."""
        count = round(case.programs * self._effort.programs)
        span_s = speed.seconds(self._traffic.trace(seed, count, 1.0)) / case.load
        return self._traffic.trace(seed, count, span_s)

    async def _speed(self, server: Server) -> Speed:
        model = client(server)
        try:
            speed = await measure(model, self._prose)
        finally:
            await model.aclose()
        self.rows += [
            Row("server", "vllm", "prompt_tokens_per_s", speed.prompt_tokens_per_s, "tokens/s"),
            Row("server", "vllm", "answer_tokens_per_s", speed.answer_tokens_per_s, "tokens/s"),
        ]
        return speed

    def _systems(self, case: Case, number: int) -> list[str]:
        main = list(MAIN)
        turn = number % len(main)
        chosen = [*main[turn:], *main[:turn]]
        if number == 0 and case is SATURATED:
            named = bool(self._only)
            chosen += WITHOUT if self._effort.ablation or named else ()
            chosen += ALONE if self._effort.alone or named else ()
        return [name for name in chosen if not self._only or name in self._only]


def _main(one: Mapping[str, Played]) -> Mapping[str, Played]:
    return {name: played for name, played in one.items() if name in MAIN}


def _brief(played: Played) -> str:
    found = figures(played)
    shown = ("mean_program_latency_s", "p99_program_latency_s", "makespan_s", "backlog")
    return ", ".join(f"{name} {found[name][0]:.1f}" for name in shown)


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)
