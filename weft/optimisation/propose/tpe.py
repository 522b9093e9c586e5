"""Combinations of known options by a tree-structured Parzen estimator, with Optuna (Akiba et al.,
arXiv 1907.10902), as MIPROv2 and Cognify (arXiv 2502.08056) choose them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, Final, Literal, get_args

from weft.core.errors import BuildError
from weft.core.extras import optional_packages
from weft.optimisation.candidates import Candidate, KnobOptions, Proposal, SearchState
from weft.optimisation.objectives import COST, LATENCY, QUALITY, Objective
from weft.optimisation.propose.context import ProposalContext

Wanted = Literal["quality", "latency", "cost"]
_OBJECTIVES: Final[dict[str, Objective]] = {
    "quality": QUALITY,
    "latency": Objective("latency", LATENCY.margin),
    "cost": COST,
}
_MOST_TRIES: Final = 8


class ParzenKnobs:
    """The combinations of options that look most promising by TPE.

    The measured candidates are its trials, with the mean difference from the baseline on the same
    cases for each of `objectives`. It makes no model call. Useful where other proposers have added
    many options; with few measurements its combinations are random ones.
    """

    calls = 0
    """It makes no model calls."""

    def __init__(
        self,
        context: ProposalContext,
        knobs: KnobOptions,
        *,
        count: int = 4,
        objectives: Sequence[Wanted] = ("quality",),
        startup: int = 8,
    ) -> None:
        del knobs  # those of the state have the options of other proposers, too
        unknown = [each for each in objectives if each not in get_args(Wanted)]
        if unknown or not objectives:
            what = f"tpe: {', '.join(map(str, unknown)) or 'nothing'} cannot be an objective"
            raise BuildError(what, hint="quality, latency, cost")
        self._context, self._count, self._startup = context, count, startup
        self._objectives = [_OBJECTIVES[each] for each in objectives]
        self._optuna = _optuna()

    async def propose(self, state: SearchState) -> Proposal:
        """Combinations that were not measured and pass the check."""
        names = [name for name in state.knobs if len(state.knobs[name]) > 1]
        if not names:
            return Proposal([])
        study = self._study(state, names)
        seen = {each for block in state.blocks for each in block} | {state.baseline}
        found: list[Candidate] = []
        for _ in range(self._count * _MOST_TRIES):
            trial = study.ask(self._distributions(state, names))
            chosen = {name: state.knobs[name][trial.params[name]] for name in names}
            candidate = Candidate.of(dict(state.baseline.settings) | chosen)
            if candidate not in seen and self._context.allowed(candidate):
                found.append(candidate)
            seen.add(candidate)
            if len(found) == self._count:
                break
        return Proposal(found)

    def _study(self, state: SearchState, names: Sequence[str]) -> Any:
        sampler = self._optuna.samplers.TPESampler(
            seed=self._context.seed + len(state.blocks),
            multivariate=True,
            n_startup_trials=self._startup,
        )
        directions = ["maximize"] * len(self._objectives)
        study = self._optuna.create_study(directions=directions, sampler=sampler)
        for candidate, gains in self._gains(state):
            settings = dict(candidate.settings)
            study.add_trial(
                self._optuna.trial.create_trial(
                    params={n: list(state.knobs[n]).index(settings[n]) for n in names},
                    distributions=self._distributions(state, names),
                    values=gains,
                )
            )
        return study

    def _distributions(self, state: SearchState, names: Sequence[str]) -> dict[str, Any]:
        categorical = self._optuna.distributions.CategoricalDistribution
        return {name: categorical(tuple(range(len(state.knobs[name])))) for name in names}

    def _gains(self, state: SearchState) -> Iterator[tuple[Candidate, list[float]]]:
        """The mean paired difference from the baseline of each measured candidate."""
        measured = dict.fromkeys(each for block in state.blocks for each in block)
        for candidate in measured:
            blocks = [block for block in state.blocks if candidate in block]
            new = [outcome for block in blocks for outcome in block[candidate]]
            old = [outcome for block in blocks for outcome in block[state.baseline]]
            if new:
                yield (
                    candidate,
                    [
                        fmean(each.values(new)) - fmean(each.values(old))
                        for each in self._objectives
                    ],
                )


def _optuna() -> Any:
    """The module, quiet. Raises: `BuildError` where the extra is not installed."""
    with optional_packages("the proposer tpe"):
        import optuna
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
