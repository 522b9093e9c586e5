"""Thought, one call, its result, until the answer: the sequential baseline.

After ReAct (Yao et al., ICLR 2023), with typed calls instead of free text, and with a stop for
repetitions.
"""

from __future__ import annotations

from typing import Final

from weft.agents.loops.base import RoundAgent

REACT_PROMPT_VERSION: Final = "react-1"

RULES: Final = """\
You answer a question step by step. In each reply you either call one tool, and are then told its \
result, or answer.

Rules:
- Before each call, think about what is still missing.
- Use only results that you were told; never make one up.
- A call that failed fails again: change it, try another tool, or do without.
- Do not make a call twice.
- Answer as soon as the results are enough."""


class ReactAgent(RoundAgent):
    """The step-by-step agent: `make_agent("react", ...)`.

    A round is one call, so `options.calls` bounds it, and `options.rounds` does not.
    """

    name = "react"
    rules = RULES
    many = False
