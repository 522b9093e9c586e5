"""A thought in a few lines: what it cost, why it ended, what it lost. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from weft.cli.text import amount, clean, one_line
from weft.reasoning.thought import Thought


def summary(strategy: str, thought: Thought) -> Iterator[str]:
    """Lines for people: the cost first."""
    counts = thought.counts
    parts = [
        f"{counts.total_tokens:,} tokens generated",
        f"{counts.critical_path_tokens:,} on the critical path",
        amount(counts.threads, "thread"),
        amount(counts.forks, "fork"),
    ]
    if counts.cancelled_tokens:
        parts.append(f"{counts.cancelled_tokens:,} tokens cancelled")
    if counts.prefill_extra_tokens:
        parts.append(f"{counts.prefill_extra_tokens:,} tokens read again at joins")
    yield f"{clean(strategy)}: {' · '.join(parts)}"
    if thought.why:
        yield f"ended: {one_line(thought.why, 300)}"
    if thought.fidelity == "approximate" or thought.lost:
        yield f"{thought.fidelity}: {one_line(thought.lost or 'not as it was published', 300)}"
