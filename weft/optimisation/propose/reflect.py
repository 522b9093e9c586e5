"""Prompts by reflection on a few runs, and merges (the search rule of GEPA: Agrawal et al., arXiv
2507.19457).
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from weft.core.errors import ModelError
from weft.optimisation.candidates import Candidate, KnobOptions, Proposal, SearchState
from weft.optimisation.propose.context import ProposalContext
from weft.optimisation.propose.minibatch import (
    ObservationBudget,
    batch_calls,
    growth,
    imperfect,
    minibatch,
)
from weft.optimisation.propose.parents import case_front, drawn, measured, merges
from weft.optimisation.propose.prompt_nodes import asked_rewrite, prompt_nodes
from weft.optimisation.propose.rewrites import PROMPT, rewritten
from weft.optimisation.propose.structure_rules import fitting_or_baseline


class Reflection:
    """A prompt that the proposer model rewrites after a look at `cases` training runs.

    The parent is drawn from the front by case (`case_front`), the nodes take turns. Where the
    parent is `perfect` on all cases, nothing is asked. The child runs on the same cases with the
    same random numbers, and is proposed only where the sum of scores grows: whether it is better is
    for the search to say. Until a child is proposed, at most `attempts` batches are looked at. A
    merge of two members of the front costs no call; a study has at most `merges`. Runs take at most
    `most_calls` model calls: 48, or what two runs of a case may take.
    """

    def __init__(
        self,
        context: ProposalContext,
        knobs: KnobOptions,
        *,
        cases: int = 3,
        attempts: int = 3,
        merges: int = 5,
        perfect: float = 1.0,
        most_calls: int | None = None,
    ) -> None:
        self._context, self._cases, self._attempts = context, cases, attempts
        self._merges, self._perfect = merges, perfect
        self._most_calls = batch_calls(context, knobs, most_calls, usual=48, runs=2)
        self._nodes = [name.removesuffix(PROMPT) for name in knobs if name.endswith(PROMPT)]
        self.refused = 0
        """Answers so far that were no prompt for their node."""
        self.merged = 0
        """Merges so far."""

    @property
    def calls(self) -> int:
        """The most model calls of one proposal: an answer may be asked for twice."""
        return 2 * self._attempts + self._most_calls if self._nodes else 0

    async def propose(self, state: SearchState) -> Proposal:
        """At most one rewritten prompt, and one merge."""
        if not self._nodes:
            return Proposal([])
        before, number = self._context.calls, len(state.blocks)
        front = case_front(state)
        random = Random(f"{self._context.seed}:reflect:{number}")  # noqa: S311 - repeatable
        budget = ObservationBudget(self._context, self._most_calls)
        found: list[Candidate] = []
        for attempt in range(self._attempts):
            chosen = drawn(front, random) or state.best
            parent = fitting_or_baseline(self._context, chosen, state.baseline)
            child = await self._child(state, parent, attempt, budget)
            if child is not None:
                found.append(child)
                break
        found += self._merge(state, front, random)
        return Proposal(list(dict.fromkeys(found)), self._context.calls - before)

    async def _child(
        self, state: SearchState, parent: Candidate, attempt: int, budget: ObservationBudget
    ) -> Candidate | None:
        """The parent with another prompt that is better on a batch, or None."""
        number = len(state.blocks)
        step = number * self._attempts + attempt
        nodes = list(prompt_nodes(self._context, parent, self._nodes).values())
        cases = minibatch(self._context.train, self._context.seed, step, self._cases)
        old = await budget.runs(parent, cases, share=2) if nodes else []
        if not imperfect(old, self._perfect):
            return None
        node = nodes[(number + attempt) % len(nodes)]
        try:
            text, why = await asked_rewrite(self._context, node, old, step)
        except ModelError:
            return None
        label = f"prompt at {node.address} after a look at {len(old)} runs"
        option = rewritten(node.address, node.prompt, text, label, why)
        child = None if option is None else parent.replace(node.address + PROMPT, option)
        if child is None or not self._context.allowed(child):
            self.refused += 1
            return None
        if child in measured(state):
            return None
        new = await budget.runs(child, [run.case for run in old])
        return child if growth(old, new) > 0 else None

    def _merge(
        self, state: SearchState, front: Mapping[Candidate, int], random: Random
    ) -> list[Candidate]:
        """A new merge whose edits fit together, while there may be more."""
        if self.merged >= self._merges:
            return []
        made = next(filter(self._context.allowed, merges(state, front, random)), None)
        self.merged += made is not None
        return [] if made is None else [made]
