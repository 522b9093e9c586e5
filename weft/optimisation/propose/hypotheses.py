"""Labelled hypotheses of what goes wrong, a rewrite for each, and a restart from a bare program
(VISTA, arXiv 2603.18388).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final

from weft.core.errors import ModelError
from weft.optimisation.candidates import Candidate, KnobOptions, Proposal, SearchState
from weft.optimisation.options import EditOption
from weft.optimisation.propose.context import ObservedRun, ProposalContext
from weft.optimisation.propose.diagnosis import Hypothesis, asked_hypotheses
from weft.optimisation.propose.field_orders import reordered
from weft.optimisation.propose.minibatch import (
    ObservationBudget,
    batch_calls,
    growth,
    imperfect,
    minibatch,
)
from weft.optimisation.propose.parents import measured
from weft.optimisation.propose.prompt_nodes import (
    PromptNode,
    asked_rewrite,
    prompt_nodes,
)
from weft.optimisation.propose.rewrites import PROMPT, bare, rewritten
from weft.optimisation.propose.structure_rules import fitting_or_baseline

_FIELD_ORDER: Final = "field_order"


class Hypotheses:
    """The best of several rewrites, each for one hypothesis of why training cases fail.

    One question on the failing ones of `cases` training cases gives at most `count` labelled
    hypotheses. Each gets a rewrite of its own: another prompt, or for `field_order` another option
    of the node's `schema_order` knob, where the study has one. All run on the same cases, and the
    best one whose sum of scores grows is proposed, with its label; until there is one, at most
    `attempts` batches are looked at.

    The parent is the best candidate, with a chance of `epsilon` another measured one. With a chance
    of `restart`, and surely once in the first two proposals, it is the bare program: the workflow
    as it was, whose prompts are their references alone. That, or a rewrite of it, is proposed where
    it is better than the best candidate on the batch. `restart` 0: never. Runs take at most
    `most_calls` model calls: 96, or what a run of a case by each candidate may take.
    """

    def __init__(
        self,
        context: ProposalContext,
        knobs: KnobOptions,
        *,
        count: int = 3,
        cases: int = 3,
        attempts: int = 2,
        epsilon: float = 0.2,
        restart: float = 0.2,
        perfect: float = 1.0,
        most_calls: int | None = None,
    ) -> None:
        self._context, self._count, self._cases = context, count, cases
        self._attempts, self._epsilon, self._restart = attempts, epsilon, restart
        self._perfect = perfect
        self._most_calls = batch_calls(context, knobs, most_calls, usual=96, runs=count + 2)
        self._nodes = [name.removesuffix(PROMPT) for name in knobs if name.endswith(PROMPT)]
        self.refused = 0
        """Hypotheses and prompts so far that did not fit."""

    @property
    def calls(self) -> int:
        """The most model calls of one proposal: an answer may be asked for twice."""
        asked = 2 * self._attempts * (1 + self._count)
        return asked + self._most_calls if self._nodes else 0

    async def propose(self, state: SearchState) -> Proposal:
        """At most one candidate."""
        if not self._nodes:
            return Proposal([])
        before = self._context.calls
        budget = ObservationBudget(self._context, self._most_calls)
        for attempt in range(self._attempts):
            found = await self._grown(state, attempt, budget)
            if found is not None:
                return Proposal([found], self._context.calls - before)
        return Proposal([], self._context.calls - before)

    async def _grown(
        self, state: SearchState, attempt: int, budget: ObservationBudget
    ) -> Candidate | None:
        """The candidate that grows most on the batch of this attempt, or None."""
        step = len(state.blocks) * self._attempts + attempt
        random = Random(f"{self._context.seed}:hypotheses:{step}")  # noqa: S311 - repeatable
        start = self._start(state, attempt, random)
        compared = self._parent(state, random) if start is None else self._best(state)
        cases = minibatch(self._context.train, self._context.seed, step, self._cases)
        old = await budget.runs(compared, cases, share=self._count + 2)
        if not imperfect(old, self._perfect):
            return None
        cases, seen, parent = [run.case for run in old], old, compared
        if start is not None:
            parent, seen = start, await budget.runs(start, cases, share=self._count + 1)
        children = await self._children(state, parent, seen, step, random)
        runs = await budget.side_by_side(children, cases)
        grown = {each: growth(old, new) for each, new in zip(children, runs, strict=True)}
        if start is not None and start not in measured(state):
            grown = {start: growth(old, seen), **grown}
        best = max(grown, key=grown.__getitem__, default=None)
        return best if best is not None and grown[best] > 0 else None

    def _start(self, state: SearchState, attempt: int, random: Random) -> Candidate | None:
        """The bare program, where this step is a restart."""
        at, chance = len(state.blocks) + attempt, random.random()
        if not self._restart or at == 0 or (at > 1 and chance >= self._restart):
            return None
        found = state.baseline
        for node in prompt_nodes(self._context, found, self._nodes).values():
            label, why = f"restart: bare prompt at {node.address}", "the prompt itself may mislead"
            option = rewritten(node.address, node.prompt, bare(node.prompt), label, why)
            if option is not None:
                found = found.replace(node.address + PROMPT, option)
        usable = found != state.baseline and self._context.allowed(found)
        return found if usable else None

    def _best(self, state: SearchState) -> Candidate:
        return fitting_or_baseline(self._context, state.best, state.baseline)

    def _parent(self, state: SearchState, random: Random) -> Candidate:
        others = [each for each in measured(state) if each != state.best]
        if others and random.random() < self._epsilon:
            return fitting_or_baseline(self._context, random.choice(others), state.baseline)
        return self._best(state)

    async def _children(
        self,
        state: SearchState,
        parent: Candidate,
        runs: Sequence[ObservedRun],
        step: int,
        random: Random,
    ) -> list[Candidate]:
        """The parent changed for each hypothesis: new candidates that pass the check."""
        failing = imperfect(runs, self._perfect)
        nodes = prompt_nodes(self._context, parent, self._nodes)
        if not (failing and nodes):
            return []
        try:
            found, dropped = await asked_hypotheses(
                self._context, nodes, failing, self._count, step
            )
        except ModelError:
            return []
        self.refused += dropped
        async with asyncio.TaskGroup() as group:
            asked = {
                each: group.create_task(
                    self._rewritten(parent, nodes[each.node], each, failing, step)
                )
                for each in found
                if self._order(state, each) is None
            }
        known = set(measured(state))
        children = []
        for each in found:
            knob = self._order(state, each)
            if knob is not None:
                options = state.knobs[knob]
                child = reordered(self._context, parent, knob, options, each.text, known, random)
                self.refused += child is None
            else:
                child = asked[each].result()
            if child is not None and child not in known:
                known.add(child)
                children.append(child)
        return children

    def _order(self, state: SearchState, hypothesis: Hypothesis) -> str | None:
        """The knob for the order of the fields, where the hypothesis is of it."""
        knob = f"{hypothesis.node}.schema_order"
        usable = hypothesis.label == _FIELD_ORDER and len(state.knobs.get(knob, ())) > 1
        return knob if usable else None

    async def _rewritten(
        self,
        parent: Candidate,
        node: PromptNode,
        hypothesis: Hypothesis,
        runs: Sequence[ObservedRun],
        step: int,
    ) -> Candidate | None:
        try:
            text, why = await asked_rewrite(self._context, node, runs, step, hypothesis.text)
        except ModelError:
            return None
        label = f"{hypothesis.label}: another prompt at {node.address}"
        reason = f"{hypothesis.text}; {why}" if why else hypothesis.text
        option: EditOption | None = rewritten(node.address, node.prompt, text, label, reason)
        child = None if option is None else parent.replace(node.address + PROMPT, option)
        if child is None or not self._context.allowed(child):
            self.refused += 1
            return None
        return child
