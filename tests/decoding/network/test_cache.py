"""The cache of keys and values against a table of tokens, and attention over it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from weft.decoding.network.cache import KvCache

LAYERS, KV_HEADS, WIDTH, SLOTS, COLUMNS = 2, 3, 4, 3, 8
PLACES = st.tuples(st.integers(0, SLOTS - 1), st.integers(0, COLUMNS - 1))
STEPS = st.one_of(
    st.tuples(st.just("write"), st.lists(PLACES, min_size=1, max_size=4, unique=True)),
    st.tuples(st.just("copy"), st.tuples(*[st.integers(0, SLOTS - 1)] * 2, st.integers(1, 8))),
    st.tuples(st.just("splice"), st.tuples(st.lists(PLACES, min_size=1, max_size=3), PLACES)),
    st.tuples(st.just("reserve"), st.tuples(st.integers(1, 9), st.integers(1, 300))),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(STEPS, max_size=8))
def test_a_token_stays_what_was_written(steps: list[tuple[str, Any]]) -> None:
    cache = KvCache(LAYERS, KV_HEADS, WIDTH, torch.float32, torch.device("cpu"))
    cache.reserve(SLOTS, COLUMNS)
    empty = torch.zeros(LAYERS, 2, KV_HEADS, WIDTH)
    table = {(slot, column): empty for slot in range(SLOTS) for column in range(COLUMNS)}
    random = torch.Generator().manual_seed(0)
    for step in steps:
        match step:
            case ("write", where):
                tokens = torch.randn(len(where), *empty.shape, generator=random)
                places = cache.places(*map(torch.tensor, zip(*where, strict=True)))
                for layer in range(LAYERS):
                    cache.write(layer, places, tokens[:, layer].flatten(1, 2))
                table |= dict(zip(where, tokens, strict=True))
            case ("copy", (source, target, columns)):
                cache.copy(source, target, columns)
                table |= {(target, at): table[source, at] for at in range(columns)}
            case ("splice", (sources, (slot, first))):
                columns = [(first + at) % COLUMNS for at in range(len(sources))]
                cache.splice(sources, slot, columns)
                taken = [table[source] for source in sources]
                table |= {(slot, at): one for at, one in zip(columns, taken, strict=True)}
            case ("reserve", (slots, columns)):
                cache.reserve(slots, columns)
    keys, values = cache.windows(0, SLOTS, COLUMNS)
    for (slot, column), token in table.items():
        assert torch.equal(cache.column(slot, column), token)
        assert torch.equal(cache.keys(slot, column), token[:, 0, :, None])
        for layer in range(LAYERS):
            assert torch.equal(cache[layer][:, slot, :, column], token[layer])
            assert torch.equal(keys[layer][slot, :, column], token[layer, 0])
            assert torch.equal(values[layer][slot, :, column], token[layer, 1])


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("columns", [32, 160])
def test_attention_has_the_bits_that_it_has_over_tokens_side_by_side(
    rows: int, columns: int
) -> None:
    """That is how the cache lay before: [slots, columns, 2, kv_heads, head_dim]."""
    random = torch.Generator().manual_seed(0)
    tokens = torch.randn(rows, columns, 2, 3, 64, generator=random).bfloat16()
    query = torch.randn(rows, 3, 3, 64, generator=random).bfloat16()
    mask = torch.zeros(rows, 1, 1, columns).bfloat16()
    cache = KvCache(1, 3, 64, torch.bfloat16, torch.device("cpu"))
    cache.reserve(rows, columns)
    slots = torch.arange(rows).repeat_interleave(columns)
    places = cache.places(slots, torch.arange(columns).repeat(rows))
    cache.write(0, places, tokens.flatten(0, 1).flatten(1, 2))
    (keys,), (values,) = cache.windows(0, rows, columns)
    assert keys[0, 0].is_contiguous()
    found = scaled_dot_product_attention(query, keys, values, mask)
    old_keys, old_values = tokens.permute(2, 0, 3, 1, 4)
    assert torch.equal(found, scaled_dot_product_attention(query, old_keys, old_values, mask))
