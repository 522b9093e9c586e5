"""Demonstrations from the program's own good answers (DSPy's BootstrapFewShot: Khattab et al.,
arXiv 2310.03714).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from weft.core.errors import WeftError
from weft.optimisation.candidates import Candidate, KnobOptions, Proposal, SearchState
from weft.optimisation.edits import Demonstration, SetDemonstrations
from weft.optimisation.edits.draft import places
from weft.optimisation.options import EditOption
from weft.optimisation.propose.context import (
    ObservedNode,
    ObservedRun,
    ProposalContext,
    observation_calls,
    observe_within,
)
from weft.optimisation.propose.structure_rules import fitting_or_baseline
from weft.workflow.document.expressions import value_template
from weft.workflow.document.rewrite import plain_document

_KNOB: Final = ".demonstrations"
_MOST_TEXT: Final = 4_000
"""Characters of an example: longer ones are left out."""
_WHY: Final = "answers of the workflow itself that the metric has passed, shown as examples"


@dataclass(frozen=True, slots=True)
class _Example:
    """What a node was asked and what it should answer, and the case it is from."""

    user: str
    assistant: str
    case: str

    @property
    def shown(self) -> Demonstration:
        return Demonstration(user=self.user, assistant=self.assistant)


class BootstrapDemonstrations:
    """Shows a model node examples: its prompts and values in runs that the metric passes.

    The best candidate runs on training cases, a few more at each proposal. A run with a score of
    `threshold` or more gives an example for each model node; a case that fails is tried once more
    with other random numbers; and where a node's value is the workflow's only output, a failed case
    gives an example with what is expected (`labelled`). `count` sets of at most `most` examples are
    drawn, with as different answers as there are. At most `most_calls` model calls: 48, or what one
    case may take. Needs no proposer model.
    """

    def __init__(
        self,
        context: ProposalContext,
        knobs: KnobOptions,
        *,
        most: int = 4,
        count: int = 3,
        cases: int = 12,
        threshold: float = 1.0,
        labelled: bool = True,
        most_calls: int | None = None,
    ) -> None:
        self._context, self._most, self._count, self._cases = context, most, count, cases
        self._threshold, self._labelled = threshold, labelled
        self._most_calls = observation_calls(context, knobs, most_calls, 48)
        self._nodes = [name.removesuffix(_KNOB) for name in knobs if name.endswith(_KNOB)]

    @property
    def calls(self) -> int:
        """The most model calls of one proposal."""
        return self._most_calls if self._nodes else 0

    async def propose(self, state: SearchState) -> Proposal:
        """The best candidate with sets of examples, for each node in turn."""
        if not self._nodes:
            return Proposal([])
        before = self._context.calls
        parent = fitting_or_baseline(self._context, state.best, state.baseline)
        known = {node: len(state.knobs[node + _KNOB]) for node in self._nodes}
        node = min(self._nodes, key=lambda each: known[each])
        random = Random(f"{self._context.seed}:{node}:{known[node]}")  # noqa: S311 - repeatable
        runs = await self._runs(parent, rounds=max(known.values()))
        examples = list(self._examples(parent, node, runs))
        found = [
            candidate
            for _ in range(self._count if examples else 0)
            if self._context.allowed(candidate := self._with(parent, node, examples, random))
        ]
        return Proposal(list(dict.fromkeys(found)), self._context.calls - before)

    async def _runs(self, parent: Candidate, rounds: int) -> list[ObservedRun]:
        """On the first cases of a fixed order, more in later rounds; failed ones once more."""
        shuffled = list(self._context.train)
        Random(f"{self._context.seed}:cases").shuffle(shuffled)  # noqa: S311 - repeatable
        before, cases = self._context.calls, shuffled[: self._cases * rounds]
        runs = await observe_within(self._context, parent, cases, self._most_calls)
        failed = [run.case for run in runs if not self._passes(run)]
        left = self._most_calls - (self._context.calls - before)
        return runs + await observe_within(self._context, parent, failed, left, replicate=1)

    def _passes(self, run: ObservedRun) -> bool:
        return run.score is not None and run.score >= self._threshold

    def _examples(
        self, parent: Candidate, node: str, runs: Sequence[ObservedRun]
    ) -> Iterator[_Example]:
        """An example of `node` for each case that has one."""
        document = self._context.flow(parent).document
        place = places(plain_document(document)).get(node)
        prompt = None if place is None else place.raw.get("prompt")
        if not isinstance(prompt, str):
            return
        cases: set[str] = set()
        for run in sorted(runs, key=lambda each: not self._passes(each)):
            seen = next((each for each in run.nodes if each.node == node), None)
            if seen is None or seen.failure or run.case.id in cases:
                continue
            value = seen.value if self._passes(run) else self._expected(seen, run)
            example = None if value is None else _example(prompt, seen, value, run.case.id)
            if example is not None:
                cases.add(run.case.id)
                yield example

    def _expected(self, seen: ObservedNode, run: ObservedRun) -> Any:
        """What `seen` should have been, where its value is the only output; else None."""
        outputs = list(run.outputs.values())
        whole = self._labelled and len(outputs) == 1 and outputs[0] == seen.value
        same_kind = isinstance(run.case.expected, str) == isinstance(seen.value, str)
        return run.case.expected if whole and same_kind else None

    def _with(
        self, parent: Candidate, node: str, examples: Sequence[_Example], random: Random
    ) -> Candidate:
        """`parent` with some examples, of as many different answers as there are."""
        shuffled = random.sample(list(examples), len(examples))
        turn: dict[str, int] = {}
        ranked = []
        for example in shuffled:
            turn[example.assistant] = turn.get(example.assistant, -1) + 1
            ranked.append((turn[example.assistant], example))
        ranked.sort(key=lambda each: each[0])
        size = random.randint(1, min(self._most, len(ranked)))
        chosen = [example for _, example in ranked[:size]]
        edit = SetDemonstrations(node=node, demonstrations=[each.shown for each in chosen])
        label = f"{len(chosen)} examples at {node}: {', '.join(each.case for each in chosen)}"
        return parent.replace(node + _KNOB, EditOption.of([edit], label, _WHY))


def _example(prompt: str, seen: ObservedNode, value: Any, case: str) -> _Example | None:
    try:
        user = value_template(prompt).render(dict(seen.inputs))
    except WeftError:
        return None
    texts = [_text(user), _text(value)]
    if not all(text.strip() and len(text) <= _MOST_TEXT for text in texts):
        return None
    return _Example(texts[0], texts[1], case)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
