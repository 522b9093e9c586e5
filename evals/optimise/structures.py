"""Structure and message formats on a program with a planted optimum; its models are functions.

`structure`: two nodes err, one of them beside a slower one. The planted optimum is a verifier at
the one with slack: elsewhere it moves the wall time. `formats`: what may be left out is planted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from random import Random
from statistics import fmean, median
from typing import Any, Final

import weft
from evals.engine.rows import Row
from weft.core.errors import ModelError
from weft.core.ports import ModelRequest
from weft.evaluation.case import Case
from weft.optimisation.call_bound import call_bound
from weft.optimisation.candidates import Candidate, SearchState
from weft.optimisation.edits import EditError
from weft.optimisation.objectives import pareto_front
from weft.optimisation.options import baseline_of, knob_options, patch_of
from weft.optimisation.prediction import predict
from weft.optimisation.propose.context import ObservedNode, ObservedRun
from weft.optimisation.propose.formats import MessageFormats
from weft.optimisation.propose.structure_rules import StructureRules
from weft.optimisation.space import discovered_space
from weft.optimisation.table import OutcomeTable
from weft.testing import FakeClock, FakeModel, Reply

_TEXT: Final = """\
name: report
inputs: {x: string}
models: {small: "local:tiny"}
nodes:
  facts: {model: small, prompt: "Facts of {{ x }}"}
  style: {model: small, prompt: "Style of {{ x }}"}
  report: {model: small, prompt: "Write {{ facts }} as {{ style }}"}
outputs: {report: "{{ report }}"}
"""
_NEEDS: Final = {"report": ("facts", "style")}
_CASES: Final = tuple(Case(str(at), {"x": f"c{at}"}) for at in range(24))
_CALLS: Final = 10 * len(_CASES)
"""What both systems may spend until the planted structure is found."""
_GAIN: Final = 0.05
_FRAME: Final = 12
"""Tokens of a message around its filler."""


class PlantedProgram:
    """Implements `ProposalContext`; its functions, errors and times follow from `seed`."""

    def __init__(self, seed: int, *, reuse: bool = True) -> None:
        random = Random(seed)
        self.train, self.seed, self.calls = _CASES, seed, 0
        slow, fast = random.sample(("Facts", "Style"), 2)
        self._seconds = {slow: 9.0, fast: 1.0, "Write": 2.0}
        self._errs = {"Facts": random.uniform(0.2, 0.4), "Style": random.uniform(0.2, 0.4)}
        self._needed = {name: random.choice((20, 40, 90)) for name in ("Facts", "Style")}
        self.fast = fast.lower()
        self.clock, self._reuse, self._table = FakeClock(), reuse, OutcomeTable()
        self._base = weft.loads(_TEXT)
        self.model = FakeModel(self._reply)
        knobs = knob_options(discovered_space(self._base.document))
        baseline = baseline_of(knobs)
        self.state = SearchState(baseline, knobs, [], baseline)

    def _reply(self, request: ModelRequest) -> Reply:
        text = request.messages[-1].content
        node = min(
            (name for name in self._seconds if name in text), key=text.index, default="Write"
        )
        return Reply(self._text(node, text, request), first_token_s=self._seconds[node])

    def _text(self, node: str, text: str, request: ModelRequest) -> str:
        if request.schema is not None and "ok" in request.schema["properties"]:
            return json.dumps({"reason": "seen", "ok": "wrong" not in text})
        if node == "Write":
            return "wrong" if "wrong" in text or "short" in text else "right"
        case = text.split("of ", 1)[1].split()[0]
        drawn = int.from_bytes(hashlib.sha256(f"{self.seed}{node}{case}".encode()).digest()[:4])
        errs = drawn / 2**32 < self._errs[node] and "was refused" not in text
        said = "wrong" if errs or ("Draft:" in text and "wrong" in text) else "good"
        return self._message(node, said, text, request)

    def _message(self, node: str, said: str, text: str, request: ModelRequest) -> str:
        """The message in its format; too short a budget, or sparse a format, loses content."""
        fields = list(request.schema["properties"]) if request.schema is not None else []
        factor = {0: 1.0, 1: 0.6, 2: 0.8}[len(fields)] if "keyword" not in text else 0.5
        budget, needed = request.sampling.max_tokens, self._needed[node] * factor
        content = said if budget is None or budget >= needed else f"{said} short"
        filler = " w" * max(0, int(min(needed, budget or needed)) - _FRAME)
        written = content + filler
        if not fields:
            return written
        return json.dumps({name: content if at else written for at, name in enumerate(fields)})

    def flow(self, candidate: Candidate) -> Any:
        return patch_of(candidate).apply(self._base)

    def allowed(self, candidate: Candidate) -> bool:
        try:
            self.flow(candidate)
        except EditError:
            return False
        return True

    def bound(self, candidate: Candidate, case: Case, replicate: int = 0) -> int:
        del replicate
        return call_bound(self.flow(candidate).unit, case.inputs) or 0

    async def observe(
        self, candidate: Candidate, cases: Sequence[Case], replicates: int = 1, first: int = 0
    ) -> list[ObservedRun]:
        del replicates  # its models answer alike in all of them
        found = []
        for case in cases:
            run = await self._run(candidate, case)
            nodes = tuple(
                ObservedNode(str(node), "model", seconds=s, needs=_NEEDS.get(str(node), ()))
                for node, s in run.run.seconds.items()
            )
            score = float(run.run.result.outputs.get("report") == "right")
            found.append(ObservedRun(case, first, dict(run.run.result.outputs), score, "", nodes))
        return found

    async def ask(
        self, prompt: str, *, schema: Mapping[str, Any] | None = None, attempt: int = 0
    ) -> Any:
        del prompt, schema, attempt
        raise ModelError("there is no proposer model")

    async def _run(self, candidate: Candidate, case: Case) -> Any:
        table = self._table if self._reuse else OutcomeTable()
        models = {"small": self.model}
        run = await predict(
            self.flow(candidate), case.inputs, table, models=models, clock=self.clock, workers=0
        )
        self.calls += run.run.spent.requests
        return run

    async def measure(self, candidate: Candidate) -> tuple[float, float, float]:
        """Means over the cases: score, wall time in seconds, tokens written."""
        runs = [await self._run(candidate, case) for case in self.train]
        return (
            fmean(run.run.result.outputs.get("report") == "right" for run in runs),
            fmean(run.wall_s for run in runs),
            fmean(run.run.whole.completion_tokens for run in runs),
        )


def structure_study(seed: int, *, shuffled: bool) -> tuple[bool, int, int]:
    """Whether the planted verifier is found within the calls; trials and calls until it is."""
    program = PlantedProgram(seed)

    async def study() -> tuple[bool, int, int]:
        score, wall, _ = await program.measure(program.state.baseline)
        rules = StructureRules(program, {}, count=99)
        tried = list((await rules.propose(program.state)).candidates)
        if shuffled:
            Random(seed).shuffle(tried)
        for number, candidate in enumerate(tried, 1):
            new, takes, _ = await program.measure(candidate)
            if new >= score + _GAIN and takes <= wall + 1e-9:
                assert program.fast in {edit.node for edit in patch_of(candidate).edits}
                return program.calls <= _CALLS, number, program.calls
        return False, len(tried), program.calls

    return program.clock.run(study())


def format_study(seed: int) -> tuple[bool, float]:
    """Whether the front of score and tokens over all formats is that of brute force; the calls with
    a table over those without.
    """
    with_table, without = PlantedProgram(seed), PlantedProgram(seed, reuse=False)
    fronts = [program.clock.run(_front(program)) for program in (with_table, without)]
    return fronts[0] == fronts[1], with_table.calls / without.calls


async def _front(program: PlantedProgram) -> list[Candidate]:
    proposer = MessageFormats(program, {}, budgets=(16, 64), count=99)
    options: dict[str, list[Any]] = {"facts.structure": [], "style.structure": []}
    base = program.state.baseline
    for candidate in (base, *(await proposer.propose(program.state)).candidates):
        for knob, found in options.items():
            option = dict(candidate.settings)[knob]
            found += [option] if option not in found else []
    points = {}
    for facts, style in product(*options.values()):
        candidate = base.replace("facts.structure", facts).replace("style.structure", style)
        score, _, tokens = await program.measure(candidate)
        points[candidate] = (score, -tokens)
    return pareto_front(points)


def structure_rows(studies: int) -> Iterator[Row]:
    """The rows of `structure` and `formats`, which has a tenth of the studies."""
    for system, shuffled in (("weft", False), ("random", True)):
        made = [structure_study(seed, shuffled=shuffled) for seed in range(studies)]
        yield Row("structure", system, "programs", float(studies), "programs")
        yield Row("structure", system, "found_share", fmean(one[0] for one in made), "share")
        trials, calls = (float(median(one[at] for one in made)) for at in (1, 2))
        yield Row("structure", system, "trials_to_found", trials, "candidates")
        yield Row("structure", system, "calls_to_found", calls, "calls")
    fronts = [format_study(seed) for seed in range(max(1, studies // 10))]
    yield Row("formats", "weft", "programs", float(len(fronts)), "programs")
    yield Row("formats", "weft", "equal_front_share", fmean(one[0] for one in fronts), "share")
    yield Row("formats", "weft", "calls_over_brute_force", fmean(one[1] for one in fronts), "x")
