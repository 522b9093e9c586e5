"""Rounds of independent calls: divide, make them in parallel, aggregate, decide.

After DTA-Llama (Divide-Then-Aggregate, Zhu et al., ACL 2025): in each turn the model lists calls,
or answers. Unlike in a plan, a call is written only after the results before it.
"""

from __future__ import annotations

from typing import Final

from weft.agents.loops.base import RoundAgent

DIVIDE_PROMPT_VERSION: Final = "divide-1"

RULES: Final = """\
You answer a question in few rounds. In each round you list all calls that can be made now, \
because none of them needs the result of another; they are made in parallel, and you are then told \
all their results. Calls that need those results belong to the next round. When the results are \
enough, you answer.

Rules:
- Divide the question into parts first, and ask for all of them at once.
- Use only results that you were told; never make one up.
- A call that failed fails again: change it, try another tool, or do without.
- Do not make a call twice.
- Answer as soon as the results are enough."""


class DivideAgent(RoundAgent):
    """The dividing agent: `make_agent("divide", ...)`."""

    name = "divide"
    rules = RULES
