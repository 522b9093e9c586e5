"""The attention of trainings gives what torch's own gives, forward and backward."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from weft.training.attention import attend


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_it_is_causal_attention_with_shared_keys(kv_heads: int) -> None:
    torch.manual_seed(0)
    query, key, value = (
        torch.randn(2, heads, 7, 8, requires_grad=True) for heads in (4, kv_heads, kv_heads)
    )
    found, _ = attend(torch.nn.Identity(), query, key, value, None)
    expected = scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
    torch.testing.assert_close(found, expected.transpose(1, 2))
    given = (query, key, value)
    seen = torch.autograd.grad(found.square().sum(), given)
    torch.testing.assert_close(seen, torch.autograd.grad(expected.square().sum(), given))


def test_a_token_does_not_see_what_follows() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 2, 5, 8) for _ in range(3))
    before, _ = attend(torch.nn.Identity(), query, key, value, None)
    key[:, :, 3:], value[:, :, 3:] = 9.0, 9.0
    after, _ = attend(torch.nn.Identity(), query, key, value, None)
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.equal(before[:, 3:], after[:, 3:])
