"""Group Think (arXiv 2505.11107): thinkers at positions of their own, each reading all others.

The words are ours. Positions follow the local variant: one range for each thinker.
"""

from __future__ import annotations

from typing import Final

from weft.core.ports import ConcurrentAttention, ModelClient
from weft.reasoning.concurrent.workers import WorkerGroupSpec, WorkerGroupStrategy
from weft.reasoning.options import ThinkOptions, read_settings
from weft.reasoning.strategy import Strategy

_RULES: Final = """\
{count} thinkers work on this task at the same time, Thinker 1 to Thinker {count}. Each can read
every word of the others as soon as it is written. Work as a group: take what nobody has taken,
leave what another does better, build on what is there, and say nothing twice. Keep to the point.
When the answer is certain, one of you writes it into \\boxed{{}}."""


def make(model: ModelClient, options: ThinkOptions) -> Strategy:
    """The strategy `group-think`. Setting: `thinkers` (default 4, at most the width).

    Raises: `BuildError` for a setting that it does not have, or out of range.
    """
    defaults = {"thinkers": min(4, options.width)}
    thinkers: int = read_settings("group-think", options.settings, defaults)["thinkers"]

    def attention(group: str, index: int) -> ConcurrentAttention:
        opening = f"Thinker {index + 1}: "
        return ConcurrentAttention(group, thinkers, index, "slots", opening=opening)

    spec = WorkerGroupSpec(_RULES.format(count=thinkers), "", attention)
    return WorkerGroupStrategy("group-think", model, options, thinkers, spec)
