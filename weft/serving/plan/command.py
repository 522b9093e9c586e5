"""A plan as the command that starts it. Starts nothing."""

from __future__ import annotations

import shlex

from weft.serving.plan.architecture import Architecture
from weft.serving.plan.limits import Limits
from weft.serving.plan.plans import Plan, formats
from weft.serving.plan.quantization import QUANTIZATIONS


def command(model: str, shape: Architecture, plan: Plan, limits: Limits, per_node: int) -> str:
    """The words to type. `model` is the name under which a server finds the weights.

    Replicas are servers of their own; only spread experts need the data-parallel ranks of one
    server. Weights in another format than their own are quantized while they load where vLLM can
    do that; otherwise `model` must be exchanged for a checkpoint in that format (`note`).
    """
    layout, scheme = plan.layout, QUANTIZATIONS[plan.quantization]
    inside = layout.dp if layout.spread else 1
    words = ["weft", "serve", model]
    for option, value in (
        ("--tp", layout.tp),
        ("--pp", layout.pp),
        ("--dp", inside),
        ("--replicas", layout.dp // inside),
    ):
        if value > 1:
            words += [option, str(value)]
    nodes = -(-layout.tp * layout.pp * inside // per_node)
    if nodes > 1:
        words += ["--nodes", str(nodes)]
    if scheme != formats(shape)[0] and scheme.argument is not None:
        words += ["--quantization", scheme.argument]
    words += ["--max-seqs", str(limits.max_seqs)]
    words += ["--", "--max-num-batched-tokens", str(limits.max_batched_tokens)]
    if layout.spread:
        words.append("--enable-expert-parallel")
    return shlex.join(words)


def note(shape: Architecture, plan: Plan) -> str | None:
    """What to know before typing the command; None if it serves the weights as they are."""
    scheme = QUANTIZATIONS[plan.quantization]
    if scheme == formats(shape)[0]:
        return None
    if scheme.argument is not None:
        return "weights are rounded while they load: answers change"
    return "name an AWQ or GPTQ checkpoint of the model instead: answers change"
