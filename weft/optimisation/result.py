"""The result of a study as pure data: what a table, a page and JSON are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal

from pydantic import TypeAdapter, ValidationError

from weft.core.errors import InputError
from weft.optimisation.edits import Patch
from weft.optimisation.edits.patch import P

VerdictKind = Literal["improved", "not_shown", "no_headroom", "unfinished"]
FigureSource = Literal["held-out", "development", "predicted"]
BASELINE: Final = "baseline"
"""The name of the workflow as it was, among the members of a front."""


@dataclass(frozen=True, slots=True)
class ObjectiveFigure:
    """One objective of a candidate. Higher is better for `quality`, lower for the others.

    objective  quality, latency or cost
    name       as reports show it: quality, p95_s, mean_s, cost_usd (money of a case); tokens (of a
               case) where the workflow costs no money
    value      a score, seconds, money or tokens; None where nothing was measured
    change     against the baseline on the same cases, with its 95 % interval `low` to `high`
    source     held-out: of cases that no choice was made by. development: of the cases that the
               search has seen, so that the best look too good. predicted: by the fitted model
    cases      how many cases it is from
    """

    objective: Literal["quality", "latency", "cost"]
    name: str
    value: float | None
    change: float = 0.0
    low: float = 0.0
    high: float = 0.0
    source: FigureSource = "development"
    cases: int = 0

    @property
    def higher_is_better(self) -> bool:
        """Whether a higher value is better."""
        return self.objective == "quality"


@dataclass(frozen=True, slots=True)
class EditNote:
    """A knob that a candidate sets otherwise than the baseline, explained.

    `edits`: as `Patch.of` reads them; `why`: the hypothesis behind them; `contribution`: by how
    much the improved figure changes with it, by the fitted model; None where that is not known.
    """

    knob: str
    label: str
    why: str = ""
    edits: tuple[Mapping[str, Any], ...] = ()
    contribution: float | None = None


@dataclass(frozen=True, slots=True)
class FrontMember:
    """A candidate of the front (see `StudyResult`), or the baseline.

    `edits_data`: all its edits, in order, as `Patch.of` reads them; `diff`: what they change, as a
    unified diff of YAML texts. `digest`: of the document.
    """

    name: str
    digest: str = ""
    edits_data: tuple[Mapping[str, Any], ...] = ()
    figures: tuple[ObjectiveFigure, ...] = ()
    edits: tuple[EditNote, ...] = ()
    diff: str = ""

    @property
    def patch(self) -> Patch:
        """The edits as a patch."""
        return Patch.of(list(self.edits_data))

    @property
    def scores(self) -> dict[str, float | None]:
        """The value of each objective, by the figure's name."""
        return {figure.name: figure.value for figure in self.figures}

    @property
    def measured(self) -> bool:
        """Whether its figures are measured, and not only predicted."""
        return all(figure.source != "predicted" for figure in self.figures)

    def figure(self, objective: str) -> ObjectiveFigure | None:
        """The figure of an objective, by its own name or the one that reports show."""
        for figure in self.figures:
            if objective in (figure.objective, figure.name):
                return figure
        return None

    def apply(self, target: P) -> P:
        """`target`, a flow or a document, with the edits. Raises: `EditError`."""
        return self.patch.apply(target)


@dataclass(frozen=True, slots=True)
class VerdictSummary:
    """What the study decided, and why.

    kind        improved; not_shown: no improvement was shown on held-out cases; no_headroom: a look
                at them would not have shown one; unfinished: the study was interrupted
    detectable  the smallest difference that the held-out cases show with a power of 80 %; None
                where they show none
    looks       at these held-out cases, by this study and earlier ones
    p           of the improved objective, adjusted for several finalists; None without a look
    """

    kind: VerdictKind
    why: str = ""
    detectable: float | None = None
    looks: int = 0
    cases: int = 0
    p: float | None = None

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True, slots=True)
class Spend:
    """What one purpose took: fresh model calls, their tokens and money (of known prices)."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0

    def __add__(self, other: Spend) -> Spend:
        return Spend(self.calls + other.calls, self.tokens + other.tokens, self.money + other.money)

    def __sub__(self, other: Spend) -> Spend:
        return Spend(self.calls - other.calls, self.tokens - other.tokens, self.money - other.money)


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case on which the best candidate scores otherwise than the baseline.

    `node`: the first node whose value differs; empty where it is not known. `held_out`: whether it
    is a held-out case.
    """

    case: str
    before: float
    after: float
    group: str = ""
    node: str = ""
    held_out: bool = True


@dataclass(frozen=True, slots=True)
class Leak:
    """A text of a case that an edit holds: gold, or an input of a held-out case.

    `place`: the edit and node; `case` and its `split`; `what` was found there.
    """

    place: str
    case: str
    split: str
    what: str


@dataclass(frozen=True, slots=True)
class ProposerNote:
    """What a proposer named: how many candidates, and how many were dropped as unfit."""

    name: str
    candidates: int = 0
    dropped: int = 0
    calls: int = 0


@dataclass(frozen=True)
class StudyResult:
    """A study of a workflow: verdict, front, and what it took.

    run          its id in the journal; empty where it is not recorded
    improve      the objective that was improved; `keep`: how much worse others might get
    data         name and digest of the data set; `splits`: cases of train, dev, held_out, canaries
    front        the best candidate; the other finalists, with held-out figures; then those that
                 none dominates by the fitted model in what was improved and kept. Without baseline
    best         the candidate that the gate accepted; else the baseline
    spend        by purpose: proposals, search, race, canaries, held-out; earlier: what was paid
                 before the study was given more, for what it did not come to again
    calls_saved  model calls that candidates' runs took from the table of outcomes
    won, lost    cases that the best candidate answers better, and worse
    """

    run: str
    flow: str
    improve: str
    verdict: VerdictSummary
    baseline: FrontMember
    front: tuple[FrontMember, ...]
    best: FrontMember
    keep: Mapping[str, float] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    metric: str = ""
    splits: Mapping[str, int] = field(default_factory=dict)
    replicates: int = 1
    seed: int = 0
    spend: Mapping[str, Spend] = field(default_factory=dict)
    budget: Mapping[str, float] = field(default_factory=dict)
    calls_saved: int = 0
    candidates: int = 0
    won: tuple[CaseChange, ...] = ()
    lost: tuple[CaseChange, ...] = ()
    leaks: tuple[Leak, ...] = ()
    proposers: tuple[ProposerNote, ...] = ()
    wall_s: float = 0.0

    @property
    def finished(self) -> bool:
        """Whether it has come to a verdict."""
        return self.verdict.kind != "unfinished"

    @property
    def improved(self) -> bool:
        """Whether the best candidate was shown to be better than the baseline."""
        return self.verdict.kind == "improved"

    @property
    def spent(self) -> Spend:
        """Everything together."""
        return sum(self.spend.values(), Spend())

    @property
    def diff(self) -> str:
        """What the best candidate changes, as a unified diff; empty where it is the baseline."""
        return self.best.diff

    def members(self) -> Sequence[FrontMember]:
        """The baseline, then the front."""
        return (self.baseline, *self.front)

    def plain(self) -> dict[str, Any]:
        """The study as JSON data, for `read`."""
        made: dict[str, Any] = _adapter().dump_python(self, mode="json")
        return made

    def to_json(self) -> str:
        """The study as JSON text."""
        return _adapter().dump_json(self, indent=2).decode()

    @classmethod
    def read(cls, data: str | Mapping[str, Any]) -> StudyResult:
        """The study that `plain` or `to_json` wrote. Raises: `InputError`."""
        try:
            if isinstance(data, str):
                return _adapter().validate_json(data)
            return _adapter().validate_python(dict(data))
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise InputError(f"this is no study: {where}: {error.errors()[0]['msg']}") from None


@cache
def _adapter() -> TypeAdapter[StudyResult]:
    return TypeAdapter(StudyResult)
