"""The selectors by name, with the settings they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from weft.core.errors import BuildError
from weft.core.suggestion import suggestion
from weft.reasoning.answers import Reader
from weft.reasoning.options import ThinkOptions
from weft.reasoning.selection.best_of import BestOf, FunctionScorer, ModelScorer
from weft.reasoning.selection.majority import ConfidenceVote, Majority, ShortestMajority
from weft.reasoning.selection.pairwise import ModelPairwiseJudge, Pairwise
from weft.reasoning.selection.selector import Scorer, Selector
from weft.reasoning.selection.synthesis import SynthesisSelector


@dataclass(frozen=True, slots=True)
class SelectorSettings:
    """The inputs of a selector's factory: options, the reader of answers, and settings."""

    options: ThinkOptions
    read: Reader
    settings: Mapping[str, Any]


DEFAULTS: Final[Mapping[str, Any]] = {"scorer": None, "top": 1.0}
"""Settings of selectors: `scorer`, a `Scorer` or a function of question and sample (None: the model
grades); `top`, the share of samples that `confidence` lets vote."""

_SELECTORS: Final[Mapping[str, Callable[[SelectorSettings], Selector]]] = {
    "majority": lambda _: Majority(),
    "first-seen": lambda _: Majority("first"),
    "smv": lambda _: ShortestMajority(),
    "confidence": lambda needs: ConfidenceVote(needs.settings["top"]),
    "best": lambda needs: BestOf(make_scorer(needs.settings["scorer"])),
    "best-weighted": lambda needs: BestOf(make_scorer(needs.settings["scorer"]), vote=True),
    "pairwise": lambda _: Pairwise(ModelPairwiseJudge()),
    "synthesis": lambda needs: SynthesisSelector(needs.options.answer_tokens, needs.read),
}
_SCORING: Final = frozenset(("best", "best-weighted"))
_ASKING: Final = frozenset(("pairwise", "synthesis"))


def make_selector(given: object, needs: SelectorSettings) -> Selector:
    """The selector that a setting names, or the setting itself, or an object of its class.

    Raises: `BuildError`, which lists the selectors.
    """
    if isinstance(given, str) and given in _SELECTORS:
        return _SELECTORS[given](needs)
    made = given() if isinstance(given, type) else given
    if not isinstance(made, str) and hasattr(made, "select"):
        return cast("Selector", made)
    hint = suggestion(given, _SELECTORS, most=None)
    raise BuildError(f"there is no selector {given!r}", hint=hint)


def asks_model(selector: object, scorer: object) -> bool:
    """Whether a selector calls the model, so that tokens must be reserved for it."""
    grades = selector in _SCORING and isinstance(make_scorer(scorer), ModelScorer)
    return grades or selector in _ASKING


def make_scorer(given: object) -> Scorer:
    """The scorer of a setting. Raises: `BuildError` for anything else."""
    if given is None or given == "model":
        return ModelScorer()
    if hasattr(given, "score"):
        return cast("Scorer", given)
    if callable(given):
        return FunctionScorer(given)
    raise BuildError(f"{given!r} is no scorer", hint="a function of question and sample, or model")
