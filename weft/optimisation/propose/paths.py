"""Combinations of the document's `choices`, composed from what each choice does alone.

Opus (Fagnoni et al., arXiv 2412.00573) takes the cheapest path through the realisations of all
tasks. Here: Pareto labels over the workflow's graph, time as a maximum at joins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

from weft.core.errors import InputError
from weft.optimisation.candidates import Candidate, KnobOptions, Proposal, SearchState
from weft.optimisation.edits import Choose
from weft.optimisation.options import EditOption
from weft.optimisation.pareto_paths import PathNode, PathOption, pareto_paths
from weft.optimisation.paths import choice_statistics, path_nodes
from weft.optimisation.propose.context import ObservedRun, ProposalContext

_KIND: Final = ".choice"
_PRIOR_CASES: Final = 2
"""The baseline's score weighs as much as so many cases in that of a choice."""


class ParetoPaths:
    """Proposes the Pareto-optimal combinations of choices in predicted score, time and cost.

    Every choice runs alone on up to `cases` training cases; its score against the baseline's is its
    factor, and factors multiply; its time is that of its node; its cost is the one in the document,
    since observed runs have none. Interactions of choices are not modelled: the search measures
    what is proposed. At most `most_calls` model calls and `count` candidates.
    """

    def __init__(
        self,
        context: ProposalContext,
        knobs: KnobOptions,
        *,
        cases: int = 8,
        count: int = 8,
        epsilon: float = 0.01,
        most_calls: int = 128,
    ) -> None:
        if min(cases, count, most_calls) < 1:
            raise InputError("cases, count and most_calls are at least 1")
        self._context, self._cases, self._count = context, cases, count
        self._epsilon, self._most_calls = epsilon, most_calls
        self._has_choices = any(name.endswith(_KIND) for name in knobs)

    @property
    def calls(self) -> int:
        return self._most_calls if self._has_choices else 0

    async def propose(self, state: SearchState) -> Proposal:
        """Combinations that were not measured yet, those with the best predicted score first."""
        before, alone = self._context.calls, _alone(state)
        if not alone:
            return Proposal(())
        runs = await self._observed([state.baseline, *(each for _, _, each in alone)])
        base = runs[state.baseline]
        if not base:
            return Proposal((), self._context.calls - before)
        nodes = self._nodes(state, alone, runs)
        known = {candidate for block in state.blocks for candidate in block}
        options = {(knob, _name(option)): option for knob, option, _ in alone}
        found: dict[Candidate, None] = {}
        for path in pareto_paths(nodes, epsilon=self._epsilon):
            made = state.baseline
            for node, choice in path.choice.items():
                if (option := options.get((node + _KIND, choice))) is not None:
                    made = made.replace(node + _KIND, option)
            if made not in known and made != state.baseline and self._context.allowed(made):
                found[made] = None
        return Proposal(list(found)[: self._count], self._context.calls - before)

    async def _observed(
        self, candidates: Sequence[Candidate]
    ) -> dict[Candidate, list[ObservedRun]]:
        """Case by case, so that candidates are compared on the same ones; those that fit."""
        fitting = [each for each in candidates if self._context.allowed(each)]
        found: dict[Candidate, list[ObservedRun]] = {each: [] for each in candidates}
        begun = self._context.calls
        for case in self._context.train[: self._cases]:
            for each in fitting:
                left = self._most_calls - (self._context.calls - begun)
                if self._context.bound(each, case) > left:
                    return found
                found[each] += await self._context.observe(each, [case])
        return found

    def _nodes(
        self,
        state: SearchState,
        alone: Sequence[tuple[str, EditOption, Candidate]],
        runs: Mapping[Candidate, Sequence[ObservedRun]],
    ) -> dict[str, PathNode]:
        """The graph of the baseline, every node with the options that could be observed."""
        flow = self._context.flow(state.baseline)
        declared = choice_statistics(flow, ())
        score = _score(runs[state.baseline], 0.0)
        nodes = {}
        for name, node in path_nodes(flow.document, declared).items():
            own = next(iter(declared[name]))
            options = [
                PathOption(own, _seconds(name, runs[state.baseline]), declared[name][own].cost, 1.0)
            ]
            for knob, option, candidate in alone:
                if knob != name + _KIND or not runs[candidate]:
                    continue
                choice = _name(option)
                cost = declared[name][choice].cost if choice in declared[name] else 0.0
                factor = _score(runs[candidate], score) / score if score else 1.0
                options.append(PathOption(choice, _seconds(name, runs[candidate]), cost, factor))
            nodes[name] = PathNode(tuple(options), node.needs)
        return nodes


def _alone(state: SearchState) -> list[tuple[str, EditOption, Candidate]]:
    """The baseline with each other choice of each node at the top."""
    return [
        (knob, option, state.baseline.replace(knob, option))
        for knob, options in state.knobs.items()
        if knob.endswith(_KIND) and "/" not in knob
        for option in options[1:]
        if isinstance(option, EditOption) and _name(option)
    ]


def _name(option: EditOption) -> str:
    """What the choice is called; empty for edits that are none."""
    edits = option.read()
    return edits[0].choice if len(edits) == 1 and isinstance(edits[0], Choose) else ""


def _score(runs: Sequence[ObservedRun], prior: float) -> float:
    """The mean score, shrunk to a prior where there is one."""
    scores = [run.score for run in runs if run.score is not None]
    weight = _PRIOR_CASES if prior else 0
    return (sum(scores) + weight * prior) / max(1, len(scores) + weight)


def _seconds(node: str, runs: Sequence[ObservedRun]) -> float:
    found = [each.seconds for run in runs for each in run.nodes if each.node == node]
    return fmean(found) if found else 0.0
