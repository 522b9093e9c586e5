"""What a rank holds: against hand calculations, and properties over all cuts."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.profile import examples
from tests.serving.plan.test_architecture import shape
from weft.serving.plan import DEVICES, Architecture, EngineLimits, RankLayout
from weft.serving.plan.architecture import QUANTIZATIONS, Experts, Latent
from weft.serving.plan.layout import kv_bytes_per_token, kv_tokens, rank_memory, weight_bytes

BF16, FP8, INT4 = (QUANTIZATIONS[name] for name in ("bf16", "fp8", "int4"))
H200 = DEVICES["h200"]


@st.composite
def architectures(draw: st.DrawFn) -> Architecture:
    """Small models of every kind: grouped or latent attention, dense or with experts."""
    kv_heads = draw(st.sampled_from([1, 2, 4, 8]))
    heads = kv_heads * draw(st.sampled_from([1, 2, 8]))
    layers = draw(st.integers(1, 9))
    experts = draw(st.none() | st.just(Experts(8, 2, 128, shared_width=64)))
    latent = draw(st.none() | st.just(Latent(48, 32, 16, 8, 16)))
    return Architecture(
        name="random",
        layers=layers,
        hidden=64,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=16,
        mlp_width=256,
        vocab=1024,
        context_tokens=4096,
        tied=draw(st.booleans()),
        attention_bias=draw(st.booleans()),
        latent=latent,
        experts=experts,
        dense_layers=frozenset(range(min(layers, draw(st.integers(0, 3)))))
        if experts
        else frozenset(),
    )


def repeated_bytes(model: Architecture, layout: RankLayout) -> int:
    """What the ranks of one replica hold more than once, counted apart from `weight_bytes`."""
    copies = layout.tp - 1
    vectors = (model.layers * model.vectors() + model.hidden) * copies
    whole = sum(
        matrix.parameters * copies
        for number in range(model.layers)
        for matrix in model.layer(number)
        if matrix.cut == "whole"
    )
    key_values = 0
    if model.latent is None:
        extra_heads = max(model.kv_heads, layout.tp) - model.kv_heads
        key_values = model.layers * extra_heads * 2 * model.head_dim * model.hidden
    head = model.head.parameters if model.tied and layout.pp > 1 else 0
    return 2 * (vectors + whole + key_values + head)


@examples(200)
@given(architectures(), st.sampled_from([1, 2, 4, 8]), st.integers(1, 9), st.booleans())
def test_ranks_together_hold_the_model_and_what_is_repeated(
    model: Architecture, tp: int, pp: int, spread: bool
) -> None:
    layout = RankLayout(tp, pp, 1, spread and model.experts is not None)
    assume(layout.objection(model, BF16) is None)
    held = sum(tp * weight_bytes(model, layout, BF16, stage) for stage in range(pp))
    assert held == 2 * model.parameters + repeated_bytes(model, layout)


@examples(100)
@given(architectures(), st.sampled_from([1, 2, 4]), st.integers(1, 4))
def test_a_finer_cut_never_leaves_less_room(model: Architecture, tp: int, pp: int) -> None:
    coarse, fine = RankLayout(tp, pp), RankLayout(2 * tp, pp)
    assume(fine.objection(model, BF16) is None and coarse.objection(model, BF16) is None)
    assert max(weight_bytes(model, fine, BF16, stage) for stage in range(pp)) <= max(
        weight_bytes(model, coarse, BF16, stage) for stage in range(pp)
    )
    assert kv_bytes_per_token(model, fine, BF16) <= kv_bytes_per_token(model, coarse, BF16)


@examples(100)
@given(st.integers(1, 200), st.integers(1, 16))
def test_stages_are_all_layers_in_order(layers: int, pp: int) -> None:
    assume(pp <= layers)
    stages = RankLayout(1, pp).stages(layers)
    assert [n for stage in stages for n in stage] == list(range(layers))
    assert max(map(len, stages)) - min(map(len, stages)) <= 1


def test_uneven_layers_go_where_vllm_puts_them() -> None:
    assert [len(stage) for stage in RankLayout(1, 4).stages(94)] == [23, 24, 24, 23]
    assert [len(stage) for stage in RankLayout(1, 4).stages(61)] == [15, 15, 16, 15]


def test_llama_70b_by_hand() -> None:
    model, layout = shape("llama-3.1-70b"), RankLayout(tp=4)
    assert kv_bytes_per_token(model, RankLayout(), BF16) == 80 * 2 * 8 * 128 * 2 == 327_680
    assert kv_bytes_per_token(model, layout, BF16) == 327_680 // 4
    attention = 8192 * (64 + 8 + 8 + 64) * 128
    layer = attention + 3 * 8192 * 28_672
    norms = 2 * 8192 * 80 + 8192
    by_hand = 2 * ((80 * layer + 2 * 128_256 * 8192) // 4 + norms)
    assert weight_bytes(model, layout, BF16) == by_hand == 35_278_831_616
    memory = rank_memory(model, layout, BF16, H200, EngineLimits())
    room = int(143_771 * 2**20 * 0.92) - by_hand - memory.activation_bytes - memory.reserved_bytes
    assert memory.kv_tokens == room // (81_920 * 16) * 16


def test_formats_and_their_scales() -> None:
    model = shape("llama-3.1-8b")
    linear = 32 * (4096 * (32 + 8 + 8 + 32) * 128 + 3 * 4096 * 14_336)
    rest = 2 * (model.parameters - linear)
    outputs = 32 * ((32 + 8 + 8) * 128 + 4096 + 2 * 14_336 + 4096)
    assert weight_bytes(model, RankLayout(), FP8) == rest + linear + 4 * outputs
    assert weight_bytes(model, RankLayout(), INT4) == rest + linear // 2 + linear // 128 * 5 // 2


def test_the_kv_cache_that_vllm_reports_on_a_cpu() -> None:
    """vLLM 0.32 with 1 GiB and its blocks of 128 says `CPU KV cache size: 46,592 tokens`."""
    model = shape("smollm2-135m-instruct")
    assert kv_tokens(1 << 30, kv_bytes_per_token(model, RankLayout(), BF16), 128) == 46_592


@pytest.mark.parametrize(
    ("name", "layout", "scheme", "said"),
    [
        ("smollm2-135m-instruct", RankLayout(tp=2), BF16, "9 attention heads"),
        ("smollm2-135m-instruct", RankLayout(tp=9), BF16, "width 1536"),
        ("llama-3.1-8b", RankLayout(pp=33), BF16, "32 layers"),
        ("llama-3.1-8b", RankLayout(tp=2, spread=True), BF16, "no experts"),
        ("mixtral-8x7b", RankLayout(tp=4, dp=4, spread=True), BF16, "8 experts"),
        ("qwen3-235b-a22b", RankLayout(tp=8), INT4, "192 of expert width 1536"),
    ],
)
def test_cuts_that_vllm_refuses(name: str, layout: RankLayout, scheme: object, said: str) -> None:
    reason = layout.objection(shape(name), scheme)  # type: ignore[arg-type]
    assert reason is not None
    assert said in reason


def test_a_checkpoint_in_blocks_is_cut_in_whole_blocks() -> None:
    blocks = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    model = shape("qwen3-235b-a22b", quantization_config=blocks)
    assert "192 of expert width" in str(RankLayout(tp=8).objection(model, FP8))
    assert RankLayout(tp=8, spread=True).objection(model, FP8) is None
    assert RankLayout(tp=4).objection(model, FP8) is None
