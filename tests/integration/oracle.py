"""What a model must answer, from transformers: its greedy tokens, its distribution of answers."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

Answer = tuple[int, ...]


class Oracle:
    """A model in float32, asked one token at a time and without a cache."""

    def __init__(self, folder: Path) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self._tokenizer = AutoTokenizer.from_pretrained(folder)

    def greedy(self, prompt: str, tokens: int) -> list[int]:
        """The most likely token after `prompt`, and so on, `tokens` of them."""
        given = self._tokenizer(prompt).input_ids
        ids = list(given)
        for _ in range(tokens):
            ids.append(int(self._logits([ids])[0].argmax()))
        return ids[len(given) :]

    def answers(self, prompt: str, tokens: int, top_k: int) -> Mapping[Answer, float]:
        """The probability of each answer of so many tokens, at temperature 1."""
        given = self._tokenizer(prompt).input_ids
        known: dict[Answer, float] = {(): 1.0}
        for _ in range(tokens):
            logits = self._logits([[*given, *answer] for answer in known])
            best = logits.topk(top_k)
            shares = best.values.softmax(-1).tolist()
            known = {
                (*answer, token): known[answer] * share
                for answer, ids, row in zip(known, best.indices.tolist(), shares, strict=True)
                for token, share in zip(ids, row, strict=True)
            }
        return known

    def _logits(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        with torch.inference_mode():
            logits: torch.Tensor = self._model(input_ids=torch.tensor(rows)).logits[:, -1]
        return logits


def deviation(samples: Sequence[Sequence[int]], expected: Mapping[Answer, float]) -> float:
    """How many standard deviations chi-square lies above what chance gives, about 0 if equal.

    Answers that `expected` lacks, and those too rare for the test (fewer than 5 expected), are one
    cell. Wilson and Hilferty's cube root makes chi-square normal (PNAS 17, 1931).
    """
    counts = Counter(tuple(sample) for sample in samples)
    common = {answer for answer, share in expected.items() if share * len(samples) >= 5}
    rare_share = sum(share for answer, share in expected.items() if answer not in common)
    rare = sum(count for answer, count in counts.items() if answer not in common)
    cells = itertools.chain(
        ((counts[answer], expected[answer] * len(samples)) for answer in common),
        [(rare, max(rare_share * len(samples), 1.0))],
    )
    chi_square = sum((seen - due) ** 2 / due for seen, due in cells)
    freedom = len(common)
    width = 2 / (9 * freedom)
    return float(((chi_square / freedom) ** (1 / 3) - (1 - width)) / width**0.5)
