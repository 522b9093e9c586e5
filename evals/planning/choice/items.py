"""Prompts and their answers from four domains, split by position. Knows no model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from evals.planning.data import load, load_lines

_PROMPT_CHARS: Final = 400
_ANSWER_CHARS: Final = 240
_TASK: Final = "Task:"


@dataclass(frozen=True, slots=True)
class Item:
    """A prompt, and an answer that a good model finds likely."""

    domain: str
    prompt: str
    answer: str


def items() -> dict[str, list[Item]]:
    """All items by domain, in the order of the files. Raises: `Skipped` without the data."""
    texts = {
        "sums": _sums(),
        "mathematics": _mathematics(),
        "calls": _calls(),
        "plans": _plans(),
    }
    return {
        domain: [
            Item(domain, prompt[:_PROMPT_CHARS], answer[:_ANSWER_CHARS])
            for prompt, answer in pairs
            if prompt and answer
        ]
        for domain, pairs in texts.items()
    }


def _sums() -> Iterator[tuple[str, str]]:
    for row in load_lines("reasoning/gsm8k_test.jsonl"):
        yield row["question"], row["answer"]


def _mathematics() -> Iterator[tuple[str, str]]:
    for row in load("reasoning/math500.json"):
        yield row["problem"], row["solution"]


def _calls() -> Iterator[tuple[str, str]]:
    for name in ("glaive", "sgd"):
        for row in load(f"planner/nestful/non-executable-{name}-data.json"):
            yield row["input"], json.dumps(row["output"])


def _plans() -> Iterator[tuple[str, str]]:
    for row in load("planner/worfbench/wikihow.graph_eval.json"):
        said: dict[str, Any] = {turn["role"]: turn["content"] for turn in row["conversations"]}
        yield said["user"][said["user"].find(_TASK) :], said["assistant"]
