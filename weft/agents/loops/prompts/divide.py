"""The prompt of `divide`: rounds of calls that do not need one another, made in parallel."""

from __future__ import annotations

from typing import Final

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
