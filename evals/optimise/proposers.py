"""`reflect` and `hypotheses` on a seed prompt with a trap; both ask one scripted model.

The program is one model node, a function. Its seed prompt asks for the answer before the reasons.
While a prompt has that sentence nothing else has an effect: neither other sentences nor the knobs
`temperature` and `model`. Without it two of seven sentences and one of the knobs help. The sizes of
the effects are those of the case `seed_trap`. Any change, with an effect or not, draws half of the
cases anew. The real proposers work behind the real search.

The scripted model of a study, with its quality `q`:

- It knows one right label for a prompt: `field_order` while the trap is in it, then that of a
  helpful sentence that is missing; a prompt that has them all has none.
- To name a hypothesis is to draw one: the right label with chance `q`, else any other label, all
  alike. A diagnosis question is answered by as many independent draws as it asks for.
- A rewrite question with a hypothesis: the prompt with what its label stands for. `field_order`
  takes the trap out, any other label adds its sentence; everything else, the trap too, stays.
- A rewrite question without one: the model makes one draw as above, and rewrites by it.

So both proposers get the same chance `q` for each rewrite. By construction: at `q` 0 no rewrite
takes the trap out; the bare prompt of a restart has no trap, so a restart escapes whatever `q` is,
if its batch shows it; and `hypotheses` tries several rewrites of a batch, `reflect` one, for more
calls. A model with a lasting blind spot, not seen in a share of studies, mixes `q` 0 and 1.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean, median
from typing import Any, Final

import weft
from evals.engine.rows import Row
from weft.evaluation.case import Case
from weft.optimisation.candidates import Candidate, CaseId, CaseOutcome
from weft.optimisation.decide import HeldOut
from weft.optimisation.edits import EditError
from weft.optimisation.edits.draft import places
from weft.optimisation.options import baseline_of, knob_options, patch_of
from weft.optimisation.propose.context import ObservedNode, ObservedRun
from weft.optimisation.propose.diagnosis import LABELS
from weft.optimisation.propose.registry import ProposerLike, make_proposer
from weft.optimisation.search import Search, SearchPlan
from weft.optimisation.space import declared_space
from weft.workflow.document.rewrite import plain_document

TRAP: Final = "Write the answer first, then the reasons."
SENTENCES: Final[Mapping[str, str]] = {
    label: f"Mind the {label.replace('_', ' ')}." for label in LABELS if label != "field_order"
}
"""What a rewrite adds for each label but that of the trap."""
_TEXT: Final = f"""\
name: prompt_trap
inputs: {{question: string}}
models: {{small: "local:tiny", other: "local:tiny"}}
nodes:
  answer: {{model: small, prompt: "{{{{ question }}}}\\n{TRAP}"}}
outputs: {{answer: "{{{{ answer }}}}"}}
optimise:
  knobs: {{answer: {{prompt: true, temperature: [0.7], model: [other]}}}}
"""
Node = tuple[str, object, object]
"""Prompt, temperature and model of the node."""
QUALITIES: Final = (0.0, 0.2, 0.8)
SYSTEMS: Final[Mapping[str, ProposerLike]] = {
    "hypotheses": "hypotheses",
    "reflect": "reflect",
    "hypotheses_without_restart": {"name": "hypotheses", "restart": 0.0},
}
_CALLS: Final = 12_000
_SPLITS: Final = {"dev": 150, "train": 150, "held_out": 200}
_TRAPPED: Final = -1.2
_FREE: Final = 0.9
_SPREAD: Final = 1.2
_PROMPT: Final = re.compile(r"Its prompt now:\n(~~~+)\n(.*?)\n\1", re.DOTALL)


class TrapProgram:
    """Implements `ProposalContext` and `Evaluator`: the program, its cases, the scripted model.

    Everything follows from `seed` and `q`. A call with equal inputs is paid once.
    """

    def __init__(self, seed: int, q: float) -> None:
        random = Random(f"trap:{seed}")
        self.seed, self.calls, self.q = seed, 0, q
        self.cases = {
            split: [Case(f"{split}{at}", {"question": f"q{at} of {split}"}) for at in range(count)]
            for split, count in _SPLITS.items()
        }
        self.train = tuple(self.cases["train"])
        helpful = [*random.sample(sorted(SENTENCES), 2), random.choice(("temperature", "model"))]
        self.effects = {name: random.uniform(0.5, 0.8) for name in helpful}
        self._base = weft.loads(_TEXT)
        self._flows: dict[Candidate, Any] = {}
        self._nodes: dict[Candidate, Node] = {}
        self._paid: set[object] = set()
        self.knobs = knob_options(declared_space(self._base.document))
        self.baseline = baseline_of(self.knobs)

    def flow(self, candidate: Candidate) -> Any:
        if candidate not in self._flows:
            try:
                self._flows[candidate] = patch_of(candidate).apply(self._base)
            except EditError as error:
                self._flows[candidate] = error
        found = self._flows[candidate]
        if isinstance(found, EditError):
            raise found
        return found

    def allowed(self, candidate: Candidate) -> bool:
        try:
            self.flow(candidate)
        except EditError:
            return False
        return True

    def bound(self, candidate: Candidate, case: Case, replicate: int = 0) -> int:
        return int((self._node(candidate), case.id, replicate) not in self._paid)

    async def observe(
        self, candidate: Candidate, cases: Sequence[Case], replicates: int = 1, first: int = 0
    ) -> list[ObservedRun]:
        del replicates  # the function answers alike in all of them
        found = []
        for case in cases:
            self.calls += self._pay(candidate, case.id, first)
            score = self.score(candidate, case.id)
            value = "right" if score else "wrong"
            node = ObservedNode("answer", "model", "", case.inputs, value)
            found.append(ObservedRun(case, first, {"answer": value}, score, value, (node,)))
        return found

    async def outcomes(
        self, candidate: Candidate, cases: Sequence[CaseId], replicates: int
    ) -> list[CaseOutcome]:
        assert replicates == 1
        return [
            CaseOutcome(self.score(candidate, str(case)), calls=self._pay(candidate, str(case), 0))
            for case in cases
        ]

    def calls_needed(self, candidate: Candidate, cases: Sequence[CaseId], replicates: int) -> int:
        node = self._node(candidate)
        return replicates * sum((node, case, 0) not in self._paid for case in cases)

    def _pay(self, candidate: Candidate, case: str, replicate: int) -> int:
        key = (self._node(candidate), case, replicate)
        fresh = key not in self._paid
        self._paid.add(key)
        return int(fresh)

    def _node(self, candidate: Candidate) -> Node:
        if candidate not in self._nodes:
            raw = places(plain_document(self.flow(candidate).document))["answer"].raw
            self._nodes[candidate] = (str(raw["prompt"]), raw.get("temperature"), raw["model"])
        return self._nodes[candidate]

    def score(self, candidate: Candidate, case: str) -> float:
        """1 where the case is right. Half of the cases have random numbers that all share."""
        random = Random(f"{self.seed}:{case}")
        logit = _TRAPPED + random.gauss(0, _SPREAD)
        logit += sum(self._worth(each) for each in self.active(candidate))
        if random.random() < 0.5:
            random = Random(f"{self.seed}:{case}:{self._node(candidate)}")
        return float(random.random() < 1 / (1 + math.exp(-logit)))

    def _worth(self, name: str) -> float:
        return _FREE if name == "free" else self.effects[name]

    def active(self, candidate: Candidate) -> list[str]:
        """What has an effect: nothing while the prompt has the trap."""
        prompt, temperature, model = self._node(candidate)
        if TRAP in prompt:
            return []
        settings = {
            "temperature": temperature is not None,
            "model": model != "small",
            **{label: sentence in prompt for label, sentence in SENTENCES.items()},
        }
        return ["free", *(name for name in sorted(self.effects) if settings[name])]

    def escaped(self, candidate: Candidate) -> bool:
        """Whether the prompt is without the trap."""
        return TRAP not in self._node(candidate)[0]

    async def ask(
        self, prompt: str, *, schema: Mapping[str, Any] | None = None, attempt: int = 0
    ) -> Any:
        assert schema is not None
        key = f"{self.seed}:{attempt}:{prompt}"
        self.calls += key not in self._paid
        self._paid.add(key)
        found = _PROMPT.search(prompt)
        assert found is not None
        now = found[2]
        if "hypotheses" in schema["properties"]:
            count = schema["properties"]["hypotheses"]["maxItems"]
            labels = [self._named(now, f"{key}:{at}") for at in range(count)]
            told = [{"label": label, "node": "answer", "reason": label} for label in labels]
            return {"hypotheses": told}
        given = re.search(r"^Hypothesis: (\w+)", prompt, re.MULTILINE)
        label = self._named(now, f"{key}:0") if given is None else given[1]
        return {"why": label, "prompt": rewrite(now, label)}

    def _named(self, prompt: str, key: str) -> str:
        """The label of one hypothesis of what is wrong with a prompt."""
        random, right = Random(key), self._right(prompt)
        if right is not None and random.random() < self.q:
            return right
        return random.choice([label for label in LABELS if label != right])

    def _right(self, prompt: str) -> str | None:
        if TRAP in prompt:
            return "field_order"
        helpful = (label for label in sorted(self.effects) if label in SENTENCES)
        return next((label for label in helpful if SENTENCES[label] not in prompt), None)


def rewrite(prompt: str, label: str) -> str:
    """The prompt with what a label stands for."""
    if label == "field_order":
        return prompt.replace(TRAP, "").strip()
    sentence = SENTENCES[label]
    return prompt if sentence in prompt else f"{prompt}\n{sentence}"


@dataclass(frozen=True, slots=True)
class TrapStudy:
    """`escaped`: what the study returned has no trap; `seen`: something without it was measured."""

    system: str
    q: float
    escaped: bool
    seen: bool
    calls: int
    asked: int


def trap_study(system: str, q: float, seed: int) -> TrapStudy:
    """One study by a proposer behind the search."""
    program = TrapProgram(seed, q)
    proposer = make_proposer(SYSTEMS[system], program, program.knobs)
    development = [case.id for case in program.cases["dev"]]
    Random(f"order:{seed}").shuffle(development)
    search = Search(
        program,
        program.knobs,
        program.baseline,
        development,
        HeldOut([case.id for case in program.cases["held_out"]]),
        proposers=[proposer],
        plan=SearchPlan(calls=_CALLS, seed=seed),
        allowed=program.allowed,
    )
    report = asyncio.run(search.run())
    measured = {candidate for block in report.blocks for candidate in block}
    return TrapStudy(
        system,
        q,
        program.escaped(report.verdict.candidate),
        any(map(program.escaped, measured)),
        report.calls,
        report.spent.get("proposals", 0),
    )


def _studies(number: int) -> list[TrapStudy]:
    return [trap_study(system, q, number) for system in SYSTEMS for q in QUALITIES]


def proposer_rows(
    apply: Callable[..., Iterable[list[TrapStudy]]], first: int, studies: int
) -> Iterator[Row]:
    """The rows of `prompt_trap`, over all qualities of the model, and of each of them."""
    found = [one for some in apply(_studies, range(first, first + studies)) for one in some]
    for system in SYSTEMS:
        own = [each for each in found if each.system == system]
        yield from _rows("prompt_trap", own)
        for q in QUALITIES:
            yield from _rows(f"prompt_trap_q{q:g}", [each for each in own if each.q == q])


def _rows(case: str, studies: Sequence[TrapStudy]) -> Iterator[Row]:
    figures = {
        "trap_studies": (float(len(studies)), "studies"),
        "escaped_share": (fmean(each.escaped for each in studies), "share"),
        "seen_share": (fmean(each.seen for each in studies), "share"),
        "calls": (float(median(each.calls for each in studies)), "calls"),
        "proposal_calls": (float(median(each.asked for each in studies)), "calls"),
    }
    for metric, (value, unit) in figures.items():
        yield Row(case, studies[0].system, metric, value, unit)
