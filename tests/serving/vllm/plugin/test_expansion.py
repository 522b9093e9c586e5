"""The repair of speculative sampling: right answers, found faults, healthy functions untouched."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.serving.vllm.plugin import mend
from weft.serving.vllm.plugin.repairs import TokenExpansion, expand_batch_to_tokens, expands

HOME = "vllm.v1.sample.rejection_sampler"


def slowly(
    x: torch.Tensor, ends: torch.Tensor, num_tokens: int, replace_from: int = 0, replace_to: int = 0
) -> torch.Tensor:
    """What the function's own documentation says, one token at a time."""
    out = x.new_empty(num_tokens)
    start = 0
    for request, end in enumerate(ends.tolist()):
        for token in range(start, end):
            out[token] = replace_to if x[request] == replace_from else x[request]
        start = end
    return out


def into_a_copy(
    x: torch.Tensor, ends: torch.Tensor, num_tokens: int, replace_from: int = 0, replace_to: int = 0
) -> torch.Tensor:
    """The fault: the answer goes into a copy, and the caller gets what the memory held."""
    out = torch.zeros(num_tokens, dtype=x.dtype)
    out.to(torch.int64, copy=True)[:] = slowly(x, ends, num_tokens, replace_from, replace_to)
    return out


def without_replacing(
    x: torch.Tensor, ends: torch.Tensor, num_tokens: int, replace_from: int = 0, replace_to: int = 0
) -> torch.Tensor:
    return slowly(x, ends, num_tokens)


def in_whole_numbers(
    x: torch.Tensor, ends: torch.Tensor, num_tokens: int, replace_from: int = 0, replace_to: int = 0
) -> torch.Tensor:
    return slowly(x.long(), ends, num_tokens, replace_from, replace_to).to(x.dtype)


class Remembering:
    """Memory that still holds the right answer to the question before."""

    def __init__(self) -> None:
        self.memory = torch.zeros(64)

    def __call__(
        self, x: torch.Tensor, ends: torch.Tensor, num_tokens: int, old: int = 0, new: int = 0
    ) -> torch.Tensor:
        out = self.memory[:num_tokens].to(x.dtype)
        self.memory[:num_tokens] = slowly(x, ends, num_tokens, old, new).float()
        return out


@given(
    st.lists(st.tuples(st.sampled_from([0, 0.5, 1, 0.01, 40, 7]), st.integers(0, 5)), max_size=9),
    st.sampled_from([torch.float32, torch.float64, torch.int32, torch.int64]),
    st.sampled_from([torch.int32, torch.int64]),
    st.sampled_from([(0, 0), (0, 1), (1, 5)]),
)
@examples(200)
def test_each_token_gets_its_requests_value(
    requests: list[tuple[float, int]],
    kind: torch.dtype,
    counting: torch.dtype,
    replacement: tuple[int, int],
) -> None:
    values = torch.tensor([value for value, _ in requests], dtype=kind)
    ends = torch.tensor([count for _, count in requests], dtype=counting).cumsum(0, dtype=counting)
    total = sum(count for _, count in requests)
    answer = expand_batch_to_tokens(values, ends, total, *replacement)
    assert answer.dtype == kind
    assert answer.tolist() == slowly(values, ends, total, *replacement).tolist()


def test_the_given_values_are_not_changed() -> None:
    temperatures = torch.tensor([0.0, 0.5])
    expand_batch_to_tokens(temperatures, torch.tensor([1, 3]), 3, 0, 1)
    assert temperatures.tolist() == [0.0, 0.5]


@pytest.mark.parametrize("right", [slowly, expand_batch_to_tokens])
def test_right_functions_pass(right: object) -> None:
    assert expands(right)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [into_a_copy, without_replacing, in_whole_numbers, Remembering()],
    ids=["copied", "not replaced", "in whole numbers", "remembered"],
)
def test_wrong_functions_are_found(wrong: object) -> None:
    assert not expands(wrong)  # type: ignore[arg-type]


def _install(monkeypatch: pytest.MonkeyPatch, function: object) -> ModuleType:
    module = ModuleType(HOME)
    vars(module)["expand_batch_to_tokens"] = function
    monkeypatch.setitem(sys.modules, HOME, module)
    return module


def test_a_wrong_function_is_replaced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module = _install(monkeypatch, into_a_copy)
    assert TokenExpansion().probe()
    mend([TokenExpansion()])
    assert module.expand_batch_to_tokens is expand_batch_to_tokens
    assert not TokenExpansion().probe()


def test_a_right_function_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    module = _install(monkeypatch, slowly)
    mend([TokenExpansion()])
    assert module.expand_batch_to_tokens is slowly


def test_a_function_of_another_shape_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(x: torch.Tensor) -> torch.Tensor:
        return x

    module = _install(monkeypatch, other)
    mend([TokenExpansion()])
    assert module.expand_batch_to_tokens is other
