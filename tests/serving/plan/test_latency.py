"""The duration of a forward pass: exact where it can be worked out, monotonous everywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.profile import examples
from tests.serving.plan.test_architecture import shape
from weft.serving.plan import DEVICES, Device, RankLayout
from weft.serving.plan.architecture import QUANTIZATIONS
from weft.serving.plan.hardware import Efficiency
from weft.serving.plan.latency import DeviceLink, ForwardBatch, StepTime
from weft.serving.plan.layout import weight_bytes

BF16 = QUANTIZATIONS["bf16"]
PERFECT = Efficiency(1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
H200 = replace(DEVICES["h200"], efficiency=PERFECT)
MODELS = {n: shape(n) for n in ("llama-3.1-8b", "qwen3-235b-a22b", "deepseek-v3", "mixtral-8x7b")}

cuts = st.builds(RankLayout, st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]),
                 st.sampled_from([1, 2]), st.booleans())  # fmt: skip
batches = st.builds(
    lambda prefill, decodes, context: ForwardBatch(
        prefill, prefill * (prefill + 1) / 2, decodes, decodes * context, decodes + (prefill > 0)
    ),
    st.integers(0, 8_192),
    st.integers(0, 512),
    st.integers(1, 10_000),
).filter(lambda batch: batch.sampled > 0)
cases = st.tuples(
    st.sampled_from(sorted(MODELS)), cuts, st.sampled_from(["bf16", "fp8", "int4"]), batches
)


def test_one_sequence_reads_all_weights_once() -> None:
    model = MODELS["llama-3.1-8b"]
    read = weight_bytes(model, RankLayout(), BF16) - 2 * model.embedding.parameters
    read -= 2 * (32 * model.vectors() + model.hidden)
    traffic = 2 * (
        32 * sum(m.inputs + m.outputs for m in model.layer(0)) + model.hidden + model.vocab
    )
    keys_and_values = 1_000 * 131_072
    expected = (read + traffic + keys_and_values) / 4.8e12
    found = StepTime(model, RankLayout(), BF16, H200).seconds(ForwardBatch(0, 0, 1, 1_000, 1))
    assert found == pytest.approx(expected, rel=1e-6)


def test_a_long_prompt_is_arithmetic() -> None:
    model, tokens = MODELS["llama-3.1-8b"], 8_192
    pairs = tokens * (tokens + 1) // 2
    products = 2 * tokens * 32 * sum(m.parameters for m in model.layer(0))
    attention = 4 * 32 * 32 * 128 * pairs
    head = 2 * model.head.parameters / 4.8e12  # one row: the head's weights are read, not computed
    head += 2 * (model.hidden + model.vocab) / 4.8e12
    found = StepTime(model, RankLayout(), BF16, H200).seconds(ForwardBatch(tokens, pairs, 0, 0, 1))
    assert found == pytest.approx((products + attention) / 989.4e12 + head, rel=1e-6)


def test_only_the_experts_that_are_chosen_are_read() -> None:
    step = StepTime(MODELS["qwen3-235b-a22b"], RankLayout(), BF16, H200)
    one, many = (step.seconds(ForwardBatch(0, 0, n, n, n)) for n in (1, 512))
    dense = StepTime(shape("llama-3.1-70b"), RankLayout(), BF16, H200)
    alike = dense.seconds(ForwardBatch(0, 0, 512, 512, 512)) / dense.seconds(
        ForwardBatch(0, 0, 1, 1, 1)
    )
    assert many / one > 3 * alike


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_collectives(ranks: int) -> None:
    link = DeviceLink(bytes_s=1e9, hop_s=1e-6)
    expected = 2 * (ranks - 1) / ranks * 1e6 / 1e9 + 2 * (ranks - 1) * 1e-6
    assert link.all_reduce_s(1e6, ranks) == pytest.approx(expected)
    assert link.gather_s(1e6, ranks) == pytest.approx(expected / 2)
    assert link.exchange_s(1e6, ranks, 2) == pytest.approx(
        min(2, ranks - 1) * 1e-3 + (ranks - 1) * 1e-6
    )


Rate = Literal["bandwidth_bytes_s", "link_bytes_s", "network_bytes_s"]


@examples(200)
@given(cases, st.sampled_from(["bandwidth_bytes_s", "link_bytes_s", "network_bytes_s", "flops"]))
def test_a_faster_device_is_never_slower(
    case: tuple[str, RankLayout, str, ForwardBatch], what: str
) -> None:
    name, layout, scheme, batch = case
    model, device = MODELS[name], DEVICES["h200"]
    assume(layout.objection(model, QUANTIZATIONS[scheme]) is None)
    faster: Device
    if what == "flops":
        faster = replace(device, flops={k: 2 * v for k, v in device.flops.items()})
    else:
        rate: Rate = what  # type: ignore[assignment]
        faster = replace(device, **{rate: 2 * getattr(device, rate)})  # type: ignore[arg-type]
    slow, fast = (
        StepTime(model, layout, QUANTIZATIONS[scheme], d).seconds(batch) for d in (device, faster)
    )
    assert 0 < fast <= slow


@examples(200)
@given(cases, st.integers(1, 500))
def test_more_work_never_takes_less(
    case: tuple[str, RankLayout, str, ForwardBatch], more: int
) -> None:
    name, layout, scheme, batch = case
    model = MODELS[name]
    assume(layout.objection(model, QUANTIZATIONS[scheme]) is None)
    step = StepTime(model, layout, QUANTIZATIONS[scheme], DEVICES["h200"])
    longer = replace(batch, decode_context=batch.decode_context + more * (batch.decodes > 0))
    wider = replace(batch, prefill_tokens=batch.prefill_tokens + more)
    if layout.pp == 1 or batch.prefill_tokens > 0:  # else the prompt adds a micro-batch
        assert step.seconds(wider) >= step.seconds(batch)
    assert step.seconds(longer) >= step.seconds(batch)


@examples(100)
@given(cases, st.integers(2, 50))
def test_decodes_are_linear_in_their_context(
    case: tuple[str, RankLayout, str, ForwardBatch], steps: int
) -> None:
    """What the simulator's closed form relies on."""
    name, layout, scheme, _ = case
    model = MODELS[name]
    assume(layout.objection(model, QUANTIZATIONS[scheme]) is None)
    step = StepTime(model, layout, QUANTIZATIONS[scheme], DEVICES["h200"])
    first, second, last = (
        step.seconds(ForwardBatch(0, 0, 16, 16 * (500 + n), 16)) for n in (0, 1, steps)
    )
    assert last == pytest.approx(first + steps * (second - first), rel=1e-9)


def test_windows_bound_what_decodes_read() -> None:
    windowed = shape("llama-3.1-8b", sliding_window=1_024)
    step = StepTime(windowed, RankLayout(), BF16, H200)
    short, edge, long = (step.seconds(ForwardBatch(0, 0, 1, n, 1)) for n in (512, 1_024, 100_000))
    assert short < edge == long


def test_a_pipeline_is_as_slow_as_its_stages_and_as_wide_as_they_are_many() -> None:
    model = MODELS["llama-3.1-8b"]
    whole = StepTime(model, RankLayout(), BF16, H200)
    piped = StepTime(model, RankLayout(pp=4), BF16, replace(H200, link_bytes_s=1e18, hop_s=0.0))
    one = ForwardBatch(0, 0, 1, 1_000, 1)
    assert piped.seconds(one) == pytest.approx(whole.seconds(one))
    four = ForwardBatch(0, 0, 4, 4_000, 4)
    last = 8 * 2 * sum(m.parameters for m in model.layer(0)) + 2 * model.head.parameters
    assert piped.seconds(four) == pytest.approx(4 * last / 4.8e12, rel=0.02)
