"""Weights in few bits: what they are made from comes back, and a row's product is its own."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.decoding.network.quantization import (
    GROUP,
    Int4Linear,
    Int4LinearOfFloat32,
    Int8Linear,
    _has_vnni,
    is_quantized,
    quantize,
)

OUTPUTS, INPUTS = 32, 2 * GROUP
KINDS = [
    Int4Linear,
    Int4LinearOfFloat32,
    pytest.param(Int8Linear, marks=pytest.mark.skipif(not _has_vnni(), reason="no VNNI here")),
]


def four_bits(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Levels, both ends of which every group has, and the bfloat16 weights that Q4_1 makes."""
    source = torch.Generator().manual_seed(seed)
    levels = torch.randint(0, 16, (OUTPUTS, INPUTS // GROUP, GROUP), generator=source)
    levels[..., 3], levels[..., 17] = 0, 15
    scale = torch.rand(OUTPUTS, INPUTS // GROUP, 1, generator=source) * 0.02 + 0.001
    low = -scale * (15 * torch.rand(OUTPUTS, INPUTS // GROUP, 1, generator=source))
    weight = (levels * scale + low).to(torch.bfloat16)
    return levels.reshape(OUTPUTS, INPUTS), weight.reshape(OUTPUTS, INPUTS)


@examples(10)
@given(st.integers(0, 2**31))
def test_weights_of_four_bits_get_the_levels_they_were_made_from(seed: int) -> None:
    levels, weight = four_bits(seed)
    assert is_quantized(weight)
    assert torch.equal(quantize(weight)[0].long(), levels)


@examples(10)
@given(st.integers(0, 2**31))
def test_other_weights_are_told_from_them(seed: int) -> None:
    source = torch.Generator().manual_seed(seed)
    weight = torch.randn(OUTPUTS, INPUTS, generator=source).to(torch.bfloat16)
    assert not is_quantized(weight)
    assert not is_quantized(weight[:, :-1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [True, False])
def test_products_are_close_and_a_row_does_not_depend_on_others(
    kind: type[Int4Linear | Int8Linear], bias: bool
) -> None:
    _, weight = four_bits(0)
    torch.manual_seed(1)
    dtype = torch.float32 if kind is Int4LinearOfFloat32 else torch.bfloat16
    added = torch.randn(OUTPUTS).to(torch.bfloat16).to(dtype) if bias else None
    rows = torch.randn(37, INPUTS).to(torch.bfloat16).to(dtype)
    with torch.inference_mode():
        linear = kind(weight, added)
        found = linear(rows)
        exact = rows.double() @ weight.double().T + (0.0 if added is None else added.double())
        assert found.dtype == dtype
        assert (found.double() - exact).abs().max() < 0.02 * exact.abs().max()
        for count in (1, 2, 3, 4, 5, 8, 16, 33):
            assert torch.equal(linear(rows[:count]), found[:count])
            assert torch.equal(linear(rows[-count:]), found[-count:])
