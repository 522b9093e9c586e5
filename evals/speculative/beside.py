"""Accepted lengths beside the published ones, and why they differ. Measures nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from evals.engine.rows import Lookup, Row
from weft.decoding.speculative.presets import NAMES, preset

_METRIC: Final = "accepted_length"
_TRAINED: Final = (
    "trained for minutes on two cores, on texts of the model itself; theirs for hours on a GPU, "
    "and with a target of 7B or more, whose text is easier to guess"
)
_UNTRAINED: Final = "the target's first layers, which nobody taught to end early, draft here"
REASONS: Final[Mapping[str, str]] = {
    "lookup": "answers of 64 tokens, of which much stands in no prompt; agents' text is copied",
    "suffix": "published as speed only, on agents' traces, with the texts of earlier requests",
    "hybrid": "ours",
    "draft_model": "no smaller model of the family is at hand",
    "self_draft": _UNTRAINED,
    "sequoia": _UNTRAINED,
    "medusa": _TRAINED,
    "medusa_typical": _TRAINED,
    "ppd": _TRAINED,
    "pass": "published as speed only; " + _TRAINED,
    "eagle": _TRAINED,
    "dflash": "no trained one comes with weft",
    "hidden_transfer": "published as speed only; " + _TRAINED,
    "lookahead": "a smaller window for two cores; the pool is empty at first, answers are short",
    "lexical_units": "published as speed only, the whole model trained; ours trains placeholders",
    "lexical_units_verified": "ours",
    "pearl": _UNTRAINED,
    "continuous": _UNTRAINED,
    "llmcad": _UNTRAINED,
    "easyspec": "published as speed only; " + _UNTRAINED,
    "auto": "chooses among the others",
}


def beside(rows: Sequence[Row]) -> str:
    """A table in Markdown: ours on Spec-Bench's tasks and on agents' text, theirs, the reason."""
    figures = Lookup(rows)
    head = "| decoder | Spec-Bench | agents | published | why it differs |"
    lines = [head, "|---|---|---|---|---|"]
    for name in NAMES:
        told = preset(name).published
        theirs = "" if told is None else f"{told.tokens_per_pass:.2f}: {told.where}"
        ours = " | ".join(_cell(figures(case, name, _METRIC)) for case in ("spec_bench", "agents"))
        reason = REASONS.get(name, "not measured")
        lines.append(f"| {name} | {ours} | {theirs} | {reason} |")
    return "\n".join(lines)


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
