"""A tree search over typed edits of a document (AFlow: Zhang et al., arXiv 2410.10762).

Edits are data instead of code, and retries are bounded. The tree is read off the search's state, so
that it replays.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean
from typing import Any, Final

from weft.core.errors import ModelError
from weft.optimisation.candidates import Candidate, KnobOptions, Proposal, SearchState
from weft.optimisation.edits import EditError, edits_schema, read_edits
from weft.optimisation.propose.context import (
    ObservedRun,
    ProposalContext,
    observation_calls,
    observe_within,
)
from weft.optimisation.propose.slack import slack_of
from weft.optimisation.propose.structure_rules import (
    StructuralChange,
    StructureRules,
    fitting_or_baseline,
    is_new,
    known_documents,
)

_TOP: Final = 3
_UNIFORM: Final = 0.3
_SHARPNESS: Final = 0.2
"""Of AFlow's mixed softmax: the share that is uniform, and the factor of scores in percent."""
_MOST_EDITS: Final = 5
_MOST_TEXT: Final = 1_500


@dataclass(frozen=True, slots=True)
class TreeEdge:
    """An earlier change of a parent, and mean scores on the same cases before and after it."""

    label: str
    before: float
    after: float


def mean_scores(state: SearchState) -> dict[Candidate, float]:
    """The score of each measured candidate: the baseline's mean, and the mean gain over it on the
    same cases.
    """
    base = [outcome.score for block in state.blocks for outcome in block[state.baseline]]
    if not base:
        return {}
    gains: dict[Candidate, list[float]] = {state.baseline: [0.0]}
    for block in state.blocks:
        for candidate, outcomes in block.items():
            pairs = zip(outcomes, block[state.baseline], strict=True)
            gains.setdefault(candidate, []).extend(new.score - old.score for new, old in pairs)
    return {candidate: fmean(base) + fmean(found) for candidate, found in gains.items() if found}


def selection(scores: Mapping[Candidate, float], root: Candidate) -> dict[Candidate, float]:
    """The probability of each parent, among the best ones and the root: AFlow's mixed softmax."""
    ranked = sorted(scores, key=lambda each: (-scores[each], repr(each)))
    among = list(dict.fromkeys([root, *ranked[:_TOP]]))
    top = max(100 * scores.get(each, 0.0) for each in among)
    weights = [math.exp(_SHARPNESS * (100 * scores.get(each, 0.0) - top)) for each in among]
    return {
        each: _UNIFORM / len(among) + (1 - _UNIFORM) * weight / sum(weights)
        for each, weight in zip(among, weights, strict=True)
    }


def experience(parent: Candidate, scores: Mapping[Candidate, float]) -> list[TreeEdge]:
    """The measured changes of `parent` in one knob, with what they made of its score."""
    if parent not in scores:
        return []
    found = []
    for child, score in scores.items():
        changed = child.edits(parent)
        if len(changed) == 1 and parent != child:
            (knob, option), *_ = changed.items()
            label = getattr(option, "label", str(option))
            found.append(TreeEdge(f"{knob}: {label}", scores[parent], score))
    return sorted(found, key=lambda edge: (-edge.after, edge.label))


class StructureTree:
    """Expands a good candidate, or the root, by a change that a proposer model writes as edits.

    The model sees the document, its score, the schema of edits, `cases` logged training cases, and
    the parent's earlier changes with their effects. An answer that is no list of edits, does not
    pass the check or gives a known document is dropped and counted (`refused`); after `attempts`
    answers, or where there is no model, the change is one by rule (`StructureRules`).
    """

    def __init__(
        self,
        context: ProposalContext,
        knobs: KnobOptions,
        *,
        attempts: int = 2,
        cases: int = 3,
        most_calls: int | None = None,
    ) -> None:
        self._context, self._attempts, self._cases = context, attempts, cases
        self._most_calls = observation_calls(context, knobs, most_calls, 24)
        self._rules = StructureRules(context, knobs)
        self.refused = 0
        """Answers so far that were no new candidate."""

    @property
    def calls(self) -> int:
        return 2 * self._attempts + self._most_calls

    async def propose(self, state: SearchState) -> Proposal:
        """One change of a parent drawn from the best candidates and the root."""
        before = self._context.calls
        scores = mean_scores(state)
        chances = selection(scores, state.baseline)
        known = sum(len(options) for options in state.knobs.values())
        random = Random(f"{self._context.seed}:{len(state.blocks)}:{known}")  # noqa: S311 - repeatable
        drawn = random.choices(list(chances), list(chances.values()))[0]
        parent = fitting_or_baseline(self._context, drawn, state.baseline)
        cases = self._context.train[: self._cases]
        runs = await observe_within(self._context, parent, cases, self._most_calls)
        child = await self._asked(state, parent, scores, runs)
        if child is None:
            ruled = self._rules.changes(state, parent, slack_of(runs))
            return Proposal(ruled[:1], self._context.calls - before)
        return Proposal([child], self._context.calls - before)

    async def _asked(
        self,
        state: SearchState,
        parent: Candidate,
        scores: Mapping[Candidate, float],
        runs: Sequence[ObservedRun],
    ) -> Candidate | None:
        known = known_documents(self._context, state)
        prompt = self._prompt(parent, scores, experience(parent, scores), runs)
        for attempt in range(self._attempts):
            try:
                answer = await self._context.ask(prompt, schema=_answer_schema(), attempt=attempt)
            except ModelError:
                return None
            change = _change(answer)
            if change is not None:
                _, child = change.on(parent, state.knobs)
                if is_new(self._context, child, known):
                    return child
            self.refused += 1
        return None

    def _prompt(
        self,
        parent: Candidate,
        scores: Mapping[Candidate, float],
        edges: Sequence[TreeEdge],
        runs: Sequence[ObservedRun],
    ) -> str:
        score = f"{scores[parent]:.3f}" if parent in scores else "not measured yet"
        tried = [f"- {edge.label}: {edge.before:.3f} -> {edge.after:.3f}" for edge in edges]
        logged = [
            f"- inputs: {_short(dict(run.case.inputs))}\n  outputs: {_short(dict(run.outputs))}\n"
            f"  score: {run.score}  feedback: {_short(run.feedback)}"
            for run in runs
        ]
        task = (
            "Improve this workflow by one small change of its structure: at most "
            f"{_MOST_EDITS} edits, as data that fits the schema. Say in `why` what it improves."
        )
        parts = [
            task,
            f"Workflow:\n{self._context.flow(parent).to_yaml()}",
            f"Score: {score}",
            "Changes of it that were tried; do not repeat them:\n" + ("\n".join(tried) or "none"),
            "Training cases:\n" + ("\n".join(logged) or "none"),
            f"Schema of the edits:\n{json.dumps(edits_schema())}",
        ]
        return "\n\n".join(parts)


def _answer_schema() -> dict[str, Any]:
    edits = edits_schema()
    definitions = edits.pop("$defs", {})
    return {
        "type": "object",
        "properties": {"why": {"type": "string"}, "edits": edits},
        "required": ["why", "edits"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _change(answer: object) -> StructuralChange | None:
    """The change that a model wrote, or None for what is none."""
    given = answer.get("edits") if isinstance(answer, Mapping) else None
    if not isinstance(given, list) or not 0 < len(given) <= _MOST_EDITS:
        return None
    try:
        edits = read_edits(given)
    except EditError:
        return None
    label = ", ".join(f"{edit.edit} {edit.node}" for edit in edits)
    assert isinstance(answer, Mapping), "it has edits"
    return StructuralChange(edits[0].node, edits, label, str(answer.get("why", ""))[:_MOST_TEXT])


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]} ..."
