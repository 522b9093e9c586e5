"""The prompts of every case: Spec-Bench's six tasks, and four kinds of text that agents write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from evals.speculative.cases import edits, filling, plans, quoting, specbench
from evals.speculative.cases.prompt import Prompt

CASES: Final[dict[str, Callable[[int], Sequence[Prompt]]]] = {
    **{task: partial(specbench.prompts, task) for task in specbench.TASKS},
    "agent_quoting": quoting.prompts,
    "agent_plans": plans.prompts,
    "agent_json": filling.prompts,
    "agent_edits": edits.prompts,
}
"""By name: so many prompts of the case. Spec-Bench's raise `Skipped` where its file is not."""

AGENTS: Final = tuple(case for case in CASES if case.startswith("agent_"))
