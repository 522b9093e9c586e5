"""The prompt of `react`: one call at a time, each chosen with the results before it in view."""

from __future__ import annotations

from typing import Final

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
