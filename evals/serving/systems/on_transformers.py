"""`python -m evals.serving.systems.on_transformers`: calls with transformers' own `generate`.

Reads `{"model": folder, "dtype": name, "calls": [[prompt ids, tokens], ...]}` and writes how many
seconds the calls take one by one, and all in one static batch. Knows no server.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import torch
from transformers import AutoModelForCausalLM

Calls = Sequence[tuple[Sequence[int], int]]


def one_by_one(model: Any, calls: Calls) -> float:
    """Seconds for all calls, one after another."""
    started = time.perf_counter()
    for prompt, tokens in calls:
        _generate(model, torch.tensor([prompt]), torch.ones(1, len(prompt), dtype=int), tokens)
    return time.perf_counter() - started


def batched(model: Any, calls: Calls) -> float:
    """Seconds for one batch, padded on the left, which lasts as long as its longest answer."""
    started = time.perf_counter()
    longest = max(len(prompt) for prompt, _ in calls)
    ids = torch.zeros(len(calls), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, (prompt, _) in enumerate(calls):
        ids[row, longest - len(prompt) :] = torch.tensor(prompt)
        mask[row, longest - len(prompt) :] = 1
    _generate(model, ids, mask, max(tokens for _, tokens in calls))
    return time.perf_counter() - started


def _generate(model: Any, ids: torch.Tensor, mask: torch.Tensor, tokens: int) -> None:
    with torch.inference_mode():
        model.generate(
            ids,
            attention_mask=mask,
            do_sample=False,
            max_new_tokens=tokens,
            min_new_tokens=tokens,
            pad_token_id=0,
        )


def main() -> None:
    """Measure what standard input asks for."""
    asked = json.load(sys.stdin)
    model = AutoModelForCausalLM.from_pretrained(asked["model"], dtype=asked["dtype"]).eval()
    calls = asked["calls"]
    one_by_one(model, [(calls[0][0], 4)])
    found = {"one_by_one": one_by_one(model, calls), "batched": batched(model, calls)}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
