"""What every proposer promises, on studies of several workflows over fake models.

Calls are exactly those that were made and at most those that were said; candidates can be run; the
same seed and state give the same proposals; a second process that replays the record makes no call.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import pytest

import weft
from tests.optimisation.propose.scripted import scripted
from weft.core.errors import BuildError
from weft.core.ids import RunId
from weft.optimisation.candidates import (
    Candidate,
    CaseOutcome,
    KnobOptions,
    Proposal,
    Proposer,
    SearchState,
)
from weft.optimisation.opening import StudyOpening
from weft.optimisation.options import EditOption, baseline_of
from weft.optimisation.propose.context import ProposalContext
from weft.optimisation.propose.registry import make_proposer, maker_of
from weft.optimisation.record import StudyRecord
from weft.optimisation.study import Study
from weft.optimisation.study_options import StudyOptions
from weft.testing import FakeClock, FakeModel, MemoryJournal
from weft.workflow.history.run_history import read_history

_MODELS = """\
models:
  small: {use: openai, model: none, base_url: "http://127.0.0.1:9/v1"}
  big: {use: openai, model: none, base_url: "http://127.0.0.1:9/v1"}
"""
_ANSWER = "{type: object, properties: {answer: {type: string}, why: {type: string}}, "
_ANSWER += "required: [answer, why]}"


def _text(name: str, nodes: str, output: str, rest: str = "") -> str:
    head = f"name: {name}\ndescription: Answers questions.\ninputs: {{q: string}}\n{_MODELS}"
    return f"{head}nodes:\n{nodes}outputs: {{answer: '{{{{ {output} }}}}'}}\n{rest}"


@dataclass(frozen=True)
class ConformanceProgram:
    """A workflow with models that do `kinds` with requests, and `train` training cases."""

    text: str
    kinds: Sequence[str] = ("fitting",)
    train: int = 7
    metric: Any = None

    @property
    def rows(self) -> list[dict[str, Any]]:
        splits = ["train"] * self.train + ["dev"] * 6 + ["held_out"] * 6
        return [
            {"id": f"q{n}", "q": f"question {n}", "expected": f"a{n}", "split": split}
            for n, split in enumerate(splits)
        ]


PROGRAMS: Mapping[str, ConformanceProgram] = {
    "one": ConformanceProgram(_text("one", "  a: {model: small, prompt: 'On {{ q }}'}\n", "a")),
    "chain": ConformanceProgram(
        _text(
            "chain",
            "  facts: {model: small, prompt: 'Facts about {{ q }}'}\n"
            "  a: {model: small, prompt: 'Answer {{ q }} by {{ facts }}', repair: 2, retry: 2, "
            f"schema: {_ANSWER}}}\n",
            "a.answer",
        ),
        ("fitting", "fitting", "prose", "misfit"),
    ),
    "lost": ConformanceProgram(
        _text(
            "lost",
            "  facts: {model: small, prompt: 'Facts about {{ q }}'}\n"
            "  a: {model: big, prompt: 'Answer {{ q }} by {{ facts }}', "
            f"schema: {_ANSWER}}}\n",
            "a.answer",
        ),
        ("fitting", "lost", "lost", "refused", "prose"),
    ),
    "map": ConformanceProgram(
        _text(
            "map",
            "  parts: {model: small, prompt: 'Parts of {{ q }}', "
            "schema: {type: array, items: {type: string}, maxItems: 3}}\n"
            "  notes: {map: '{{ parts }}', as: part, "
            "do: {model: small, prompt: 'Note on {{ part }} of {{ q }}'}}\n"
            "  a: {model: small, prompt: 'Sum up {{ notes }}'}\n",
            "a",
        )
    ),
    "judged": ConformanceProgram(
        _text("judged", "  a: {model: small, prompt: 'On {{ q }}'}\n", "a"),
        ("fitting", "fitting", "prose"),
        metric={"quality": {"use": "judge", "model": "small"}},
    ),
    "choices": ConformanceProgram(
        _text(
            "choices",
            "  a: {model: small, prompt: 'On {{ q }}'}\n"
            "  b: {model: small, prompt: 'Of {{ a }}'}\n",
            "b",
            "optimise: {knobs: {a: {prompt: true, demonstrations: {max: 2}, choices: {own: {}, "
            "dear: {do: {model: big, prompt: 'All on {{ q }}'}}}}}}\n",
        )
    ),
    "closed": ConformanceProgram(
        _text(
            "closed",
            "  a: {model: small, prompt: 'On {{ q }}'}\n",
            "a",
            "optimise: {knobs: {a: {temperature: [0.0, 0.7]}}}\n",
        )
    ),
    "modelless": ConformanceProgram(_text("modelless", "  a: {value: 'On {{ q }}'}\n", "a")),
    "untrained": ConformanceProgram(
        _text("untrained", "  a: {model: small, prompt: 'On {{ q }}'}\n", "a"), train=0
    ),
}


def by_digest(case: Any, outputs: Any) -> weft.Score:
    """Some score of whatever was answered, with feedback."""
    value = sha256(repr(sorted(outputs.items())).encode("utf-8", "replace")).digest()[0] % 5 / 4
    return weft.Score(value, feedback=f"{case['id']}: too long")


@dataclass
class ConformanceStudy:
    """An opened study with one proposer, which `drive` asks as a search would."""

    study: Study
    proposer: Proposer
    context: ProposalContext
    models: Sequence[FakeModel]
    offline: bool = False
    proposals: list[Proposal] = field(default_factory=list)
    spent: int = 0

    @property
    def requests(self) -> int:
        """Calls that really were made."""
        return sum(len(model.requests) for model in self.models)

    async def drive(self, rounds: int = 3) -> list[Proposal]:
        """Ask for proposals, a few of which count as measured before the next round."""
        known = {name: list(options) for name, options in self.study.knobs.items()}
        best = baseline = baseline_of(known)
        blocks: list[dict[Candidate, list[CaseOutcome]]] = []
        for number in range(rounds):
            proposal = await self._proposed(SearchState(baseline, known, blocks, best))
            for candidate in proposal.candidates:
                self._check(candidate, known)
                for knob, option in candidate.settings:
                    if option not in known[knob]:
                        known[knob].append(option)
            measured = dict.fromkeys([baseline, best, *proposal.candidates[:3]])
            blocks.append({each: _outcomes(each, number) for each in measured})
            best = max(measured, key=lambda each: sum(o.score for o in _outcomes(each, 0)))
        return self.proposals

    async def _proposed(self, state: SearchState) -> Proposal:
        if self.proposer.calls > self.study.options.calls - self.spent:
            return Proposal([])  # as a search that cannot pay for it
        before, made, most = self.context.calls, self.requests, self.proposer.calls
        with self.study._evaluator.step("proposals"):
            proposal = await self.proposer.propose(state)
        assert self.context.calls - before == proposal.calls <= most
        assert self.requests - made == (0 if self.offline else proposal.calls)
        self.spent += proposal.calls
        self.proposals.append(proposal)
        return proposal

    def _check(self, candidate: Candidate, knobs: KnobOptions) -> None:
        assert dict(candidate.settings).keys() == knobs.keys()
        assert all(isinstance(option, EditOption) for _, option in candidate.settings)
        assert self.study.flows.allowed(candidate)


def _outcomes(candidate: Candidate, number: int) -> list[CaseOutcome]:
    """Made up, by what the candidate is."""
    text = "".join(f"{knob}{option}" for knob, option in candidate.settings)
    digest = sha256(f"{number}{text}".encode("utf-8", "surrogatepass")).digest()
    return [CaseOutcome(byte % 5 / 4, seconds=byte / 64, cost=byte / 256) for byte in digest[:4]]


class ConformanceWorld:
    """Opens studies of one program with one proposer, each by another process in its own words.

    `author` is the proposer model; None: there is none. Skips where a package is missing.
    """

    def __init__(
        self,
        name: str,
        program: ConformanceProgram,
        author: FakeModel | None,
        options: Mapping[str, Any] | None = None,
        *,
        calls: int = 5_000,
        seed: int = 0,
    ) -> None:
        self.journal, self.clock = MemoryJournal(), FakeClock()
        self._flow, self._program = weft.loads(program.text), program
        small, big = (scripted(seed, program.kinds, each) for each in ("small", "big"))
        self._named = {"small": small, "big": big} if "model: small" in program.text else {}
        self._author, self._calls, self._seed = author, calls, seed
        self._models = [small, big, *([] if author is None else [author])]
        self._given = {"name": name, **(options or {})}
        self._made: list[tuple[ProposalContext, Proposer]] = []

    @contextmanager
    def begun(self) -> Iterator[ConformanceStudy]:
        """A new study."""
        options = StudyOptions(calls=self._calls, calls_per_case=30, seed=self._seed)
        opening = self._opening(self._program.rows)
        with opening.begun(options, 1, None, self.journal, "study") as study:
            yield self._conforming(study)

    @contextmanager
    def replayed(self) -> Iterator[ConformanceStudy]:
        """The study in its record, by a process in which no model may be called."""
        history = read_history(self.journal, RunId("study"))
        record = StudyRecord.read(history, self._flow.unit, self.clock)
        opening = self._opening(None)
        with opening.made(record, history, None, offline=True) as study:
            yield self._conforming(study, offline=True)

    def _opening(self, rows: Any) -> StudyOpening:
        metric = by_digest if self._program.metric is None else self._program.metric
        given = (self._flow, rows, metric, self._named, None, self.clock)
        return StudyOpening(*given, [self._maker], self._author)

    def _maker(self, context: ProposalContext, knobs: KnobOptions) -> Proposer:
        made = make_proposer(self._given, context, knobs)
        self._made.append((context, made))
        return made

    def _conforming(self, study: Study, *, offline: bool = False) -> ConformanceStudy:
        context, proposer = self._made[-1]
        return ConformanceStudy(study, proposer, context, self._models, offline)


def takes(name: str, option: str) -> bool:
    """Whether the proposer called `name` has such an option."""
    return option in inspect.signature(maker_of(name)).parameters


def check_installed(name: str) -> None:
    """Skip the test where the proposer needs a package that is not here."""
    try:
        with ConformanceWorld(name, PROGRAMS["one"], None).begun():
            pass
    except BuildError as error:
        pytest.skip(str(error))
