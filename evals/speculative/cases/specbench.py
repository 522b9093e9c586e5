"""Spec-Bench's prompts (arXiv 2401.07851), read where they lie; their first turns.

The eight categories of MT-bench are one task, as in the benchmark's own report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from evals.planning.data import load_lines
from evals.speculative.cases.prompt import Prompt, conversation

_FILE: Final = "specbench/question.jsonl"
_ALONE: Final = ("translation", "summarization", "qa", "math_reasoning", "rag")
TASKS: Final = ("mt_bench", *_ALONE)


def prompts(task: str, count: int) -> Sequence[Prompt]:
    """`count` prompts spread evenly over the task. Raises: `Skipped` without the file."""
    rows: list[Mapping[str, Any]] = [row for row in load_lines(_FILE) if _task(row) == task]
    chosen = [rows[(2 * number + 1) * len(rows) // (2 * count)] for number in range(count)]
    return [Prompt(f"{task}-{row['question_id']}", conversation(row["turns"][0])) for row in chosen]


def _task(row: Mapping[str, Any]) -> str:
    category: str = row["category"]
    return category if category in _ALONE else "mt_bench"
