"""Hogwild! Inference (arXiv 2504.06261): workers that read one another while they write.

The words are ours; the layout and the engine place the texts.
"""

from __future__ import annotations

from typing import Final

from weft.core.ports import ConcurrentAttention, ModelClient
from weft.reasoning.concurrent.workers import WorkerGroupSpec, WorkerGroupStrategy
from weft.reasoning.options import ThinkOptions, read_settings
from weft.reasoning.strategy import Strategy

_NAMES: Final = ("Alice", "Bob", "Carol", "David", "Erin", "Frank", "Grace", "Heidi")
_RULES: Final = """\
{names} solve this task together, at the same time. Each writes short steps under its own name, and
each can read at once what the others write, finished or not.
How to work together:
- Say first what you take on. Divide the task where it can be divided, or try different ways.
- Read the others before each step. Do not do again what one of them does or has done; use it.
- When another has found a mistake or a better way, change to it. Point out mistakes that you see.
- Write each step as one short paragraph, and leave a blank line after it.
When the answer is certain, one of you writes it into \\boxed{{}}."""
_LEAD: Final = "### Steps that are done\n\n"
_OTHERS: Final = "### What the others are writing now\n\n"
_OWN: Final = "\n\n### What I am writing now\n\n"
_NUDGE: Final = "Quick check: am I doing what another has done or is doing? (yes or no) "


def make(model: ModelClient, options: ThinkOptions) -> Strategy:
    """The strategy `hogwild`.

    Settings: `workers` (default 2, at most the width), `layout` ("combined", "interleaved" or
    "contiguous"), `nudge_tokens`: tokens between two questions whether a worker repeats another's
    work.

    Raises: `BuildError` for a setting that it does not have, or out of range.
    """
    defaults = {"workers": min(2, options.width), "layout": "combined", "nudge_tokens": 256}
    settings = read_settings(
        "hogwild",
        options.settings,
        defaults,
        least={"nudge_tokens": 1},
        choices={"layout": ("contiguous", "interleaved", "combined")},
    )
    workers, layout, nudge = (settings[name] for name in defaults)

    def attention(group: str, index: int) -> ConcurrentAttention:
        return ConcurrentAttention(
            group,
            workers,
            index,
            layout,
            others="" if layout == "interleaved" else _OTHERS,
            own=_OWN,
            opening=f"**{_name(index)} [{{step}}]:** ",
            nudge=_NUDGE,
            nudge_tokens=nudge,
        )

    lead = "" if layout == "contiguous" else _LEAD
    spec = WorkerGroupSpec(
        _RULES.format(names=", ".join(map(_name, range(workers)))), lead, attention
    )
    return WorkerGroupStrategy("hogwild", model, options, workers, spec)


def _name(index: int) -> str:
    return _NAMES[index] if index < len(_NAMES) else f"Worker {index + 1}"
