"""The repair of top_k without rows: the fault is found, other rows keep the function's answer."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch

from weft.serving.vllm.plugin import mend
from weft.serving.vllm.plugin.repairs import EmptyTopK

HOME = "vllm.v1.sample.ops.topk_topp_sampler"


def of_some(logits: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """The fault: the largest of no numbers."""
    best = logits.topk(int(k.max()), dim=1).values
    smallest = best.gather(1, (k - 1).unsqueeze(1).long())
    return logits.masked_fill(logits < smallest, -float("inf"))


def of_any(logits: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return of_some(logits, k) if len(logits) else logits


def _install(monkeypatch: pytest.MonkeyPatch, function: object) -> ModuleType:
    module = ModuleType(HOME)
    vars(module)["apply_top_k_only"] = function
    monkeypatch.setitem(sys.modules, HOME, module)
    return module


def test_no_rows_are_answered_and_others_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    module = _install(monkeypatch, of_some)
    assert EmptyTopK().probe()
    mend([EmptyTopK()])
    assert not EmptyTopK().probe()
    assert module.apply_top_k_only(torch.empty(0, 7), torch.empty(0)).shape == (0, 7)
    logits, k = torch.rand(5, 7), torch.tensor([1, 2, 3, 7, 1])
    assert torch.equal(module.apply_top_k_only(logits, k), of_some(logits, k))


def test_a_right_function_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    module = _install(monkeypatch, of_any)
    mend([EmptyTopK()])
    assert module.apply_top_k_only is of_any
