"""Which plans are tried, why some are rejected, and in which order the others come."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.serving.plan.test_architecture import shape
from weft.core.errors import SpecError
from weft.serving.plan import (
    DEVICES,
    DeploymentPlan,
    EngineLimits,
    Ranking,
    RankLayout,
    Traffic,
    command,
    default_limits,
    default_traffic,
    find_devices,
    note,
    rank,
)
from weft.serving.plan.architecture import QUANTIZATIONS
from weft.serving.plan.capacity import capacity_tokens_s
from weft.serving.plan.latency import StepTime
from weft.serving.plan.plans import Goal, SimulationResult, layouts
from weft.serving.plan.simulation import SimulatedReplica, serve
from weft.serving.plan.traffic import LengthDistribution, Slo, Summary, TrafficRequest

SMALL = Summary(
    4.0, LengthDistribution(400, 900), LengthDistribution(60, 150), requests=40
).traffic("small")


def ranked(name: str, gpus: str, traffic: Traffic = SMALL, **more: object) -> Ranking:
    device, count = find_devices(gpus)
    return rank(shape(name), device, count, traffic, **more)  # type: ignore[arg-type]


def reasons(ranking: Ranking, layout: RankLayout, quantization: str = "bf16") -> list[str]:
    return [
        one.reason
        for one in ranking.rejected
        if (one.layout, one.quantization) == (layout, quantization)
    ]


def test_every_cut_is_either_a_plan_or_rejected_with_a_reason() -> None:
    ranking = ranked("qwen3-235b-a22b", "h200:8")
    seen = [(p.layout, p.quantization) for p in ranking.plans]
    seen += [(r.layout, r.quantization) for r in ranking.rejected]
    expected = list(layouts(ranking.model, ranking.device, 8))
    assert len(seen) == len(set(seen)) == 3 * len(expected)
    assert all(rejected.reason for rejected in ranking.rejected)
    assert all(layout.ranks <= 8 for layout in expected)


def test_tensor_parallelism_stays_in_one_machine() -> None:
    found = list(layouts(shape("llama-3.1-70b"), DEVICES["h200"], 32))
    assert max(layout.tp for layout in found) == 8
    assert RankLayout(tp=8, pp=4) in found
    assert max(layout.ranks for layout in found) == 32


def test_reasons() -> None:
    llama = ranked("llama-3.1-70b", "h200:8")
    assert "131.4 GiB of weights" in reasons(llama, RankLayout())[0]
    qwen = ranked("qwen3-235b-a22b", "h200:8")
    assert "437.9 GiB of weights" in reasons(qwen, RankLayout())[0]
    assert "192 of expert width" in reasons(qwen, RankLayout(tp=8), "int4")[0]
    odd = ranked("smollm2-135m-instruct", "h100:2")
    assert "9 attention heads" in reasons(odd, RankLayout(tp=2))[0]
    old = ranked("llama-3.1-8b", "a100:1")
    assert "no fp8" in reasons(old, RankLayout(), "fp8")[0]
    tight = ranked("llama-3.1-8b", "l4:1", limits=EngineLimits(256, 2_048, memory_share=0.7))
    assert "leave nothing of 15.7 GiB" in reasons(tight, RankLayout())[0]


def test_a_request_that_fits_no_cache_or_no_context() -> None:
    long = Traffic("long", (TrafficRequest(0.0, 30_000, 100),))
    small = ranked("llama-3.1-8b", "a10g:1", long, quantizations=["bf16"])
    assert "one request needs 30,132" in small.rejected[0].reason
    endless = Traffic("endless", (TrafficRequest(0.0, 131_072, 1),))
    model = ranked("llama-3.1-8b", "h200:1", endless)
    assert {one.reason for one in model.rejected} == {
        "a request of 131,073 tokens is longer than the 131,072 of the model's context"
    }


@pytest.mark.parametrize("goal", ["throughput", "latency", "cost"])
def test_promises_come_before_goals(goal: Goal) -> None:
    hard = Traffic(SMALL.title, SMALL.requests, Slo(0.2, 0.02))
    ranking = ranked("llama-3.1-70b", "h200:8", hard, goal=goal)
    kept = [plan.breach is None for plan in ranking.plans]
    assert True in kept
    assert False in kept
    assert kept == sorted(kept, reverse=True)
    worth = {
        "throughput": lambda plan: -plan.capacity_tokens_s,
        "latency": lambda plan: plan.outcome.latency_mean_s,
        "cost": lambda plan: plan.layout.ranks,
    }[goal]
    best = [worth(plan) for plan in ranking.plans if plan.breach is None]
    assert best == sorted(best)


def test_too_much_traffic_is_said() -> None:
    rush = Summary(
        500.0, LengthDistribution(1_000, 2_000), LengthDistribution(300, 600), requests=100
    ).traffic("rush")
    ranking = ranked("llama-3.1-70b", "h200:8", rush)
    assert {plan.breach for plan in ranking.plans} == {"overloaded"}


def test_a_broken_promise_is_named() -> None:
    slow = Traffic(SMALL.title, SMALL.requests, Slo(ttft_s=0.001))
    assert all(
        str(plan.breach).startswith("TTFT p95")
        for plan in ranked("llama-3.1-8b", "l4:1", slow).plans
    )


def test_only_the_formats_asked_for_and_only_those_there_are() -> None:
    only = ranked("llama-3.1-8b", "h200:2", quantizations=["fp8"])
    assert {plan.quantization for plan in only.plans} == {"fp8"}
    with pytest.raises(SpecError):
        ranked("llama-3.1-8b", "h200:2", quantizations=["fp4"])
    stored = ranked("deepseek-v3", "h200:8")
    assert {one.quantization for one in (*stored.plans, *stored.rejected)} == {"fp8"}


def test_replicas_share_the_load() -> None:
    ranking = ranked("llama-3.1-8b", "h200:4", quantizations=["bf16"])
    plans = {plan.layout: plan for plan in ranking.plans}
    one, four = plans[RankLayout()], plans[RankLayout(dp=4)]
    assert four.kv_tokens == pytest.approx(4 * one.kv_tokens, rel=0.05)
    assert four.capacity_tokens_s == pytest.approx(4 * one.capacity_tokens_s, rel=0.01)
    assert four.outcome.latency_mean_s < one.outcome.latency_mean_s


@pytest.mark.parametrize("prefix_share", [0.0, 0.5])
@pytest.mark.parametrize("slots", [16, 128])
def test_the_capacity_is_what_a_full_engine_is_simulated_to_give(
    slots: int, prefix_share: float
) -> None:
    full = Summary(
        1e6,
        LengthDistribution(500, 900),
        LengthDistribution(100, 200),
        prefix_share=prefix_share,
        requests=20 * slots,
    ).traffic("full")
    model, scheme, device = shape("llama-3.1-8b"), QUANTIZATIONS["bf16"], DEVICES["h100"]
    durations = StepTime(model, RankLayout(), scheme, device)
    predicted = capacity_tokens_s(
        full, durations, kv_tokens=400_000, block_tokens=16, slots=slots, budget=2_048
    )
    engine = SimulatedReplica(
        durations, kv_tokens=400_000, block_tokens=16, slots=slots, budget=2_048
    )
    serve(full, [engine])
    assert predicted == pytest.approx(SimulationResult.of([engine]).tokens_s, rel=0.15)


def test_the_capacity_keeps_the_promised_time_per_token() -> None:
    durations = StepTime(
        shape("llama-3.1-8b"), RankLayout(), QUANTIZATIONS["bf16"], DEVICES["h100"]
    )
    free, bound = (
        capacity_tokens_s(
            Traffic("", SMALL.requests, slo),
            durations, kv_tokens=400_000, block_tokens=16, slots=512, budget=8_192,
        )
        for slo in (Slo(), Slo(tpot_s=0.012))
    )  # fmt: skip
    assert 0 < bound < free


def best(ranking: Ranking, quantization: str) -> DeploymentPlan:
    return next(p for p in ranking.best_of_each_format() if p.quantization == quantization)


def test_the_stored_format_is_advised_first_and_others_say_what_they_change() -> None:
    ranking = ranked("llama-3.1-8b", "h200:2")
    first = ranking.best_of_each_format()[0]
    assert first.quantization == "bf16"
    assert note(ranking.model, first) is None
    assert "rounded" in str(note(ranking.model, best(ranking, "fp8")))
    assert "AWQ or GPTQ" in str(note(ranking.model, best(ranking, "int4")))


@pytest.mark.parametrize(
    ("layout", "quantization", "words"),
    [
        (RankLayout(), "bf16", ""),
        (RankLayout(tp=4, dp=2), "bf16", "--tp 4 --replicas 2"),
        (RankLayout(tp=8, pp=2), "fp8", "--tp 8 --pp 2 --nodes 2 --quantization fp8"),
        (RankLayout(tp=2, dp=4), "int4", "--tp 2 --replicas 4"),
    ],
)
def test_the_command_of_a_plan(layout: RankLayout, quantization: str, words: str) -> None:
    some = ranked("llama-3.1-8b", "h200:1").plans[0]
    plan = replace(some, layout=layout, quantization=quantization)
    expected = ["weft serve org/model", words, "--max-seqs 256 -- --max-num-batched-tokens 2048"]
    found = command("org/model", shape("llama-3.1-8b"), plan, EngineLimits(256, 2_048), 8)
    assert found == " ".join(part for part in expected if part)


def test_spread_experts_are_ranks_of_one_server() -> None:
    some = ranked("llama-3.1-8b", "h200:1").plans[0]
    plan = replace(some, layout=RankLayout(tp=1, dp=8, spread=True), quantization="bf16")
    found = command("q", shape("qwen3-235b-a22b"), plan, EngineLimits(), 8)
    assert "--dp 8 " in found
    assert "--replicas" not in found
    assert found.endswith("--enable-expert-parallel")


def test_limits_are_those_of_the_engine_for_the_size_of_the_device() -> None:
    sizes = [default_limits(DEVICES[n]) for n in ("b200", "h200", "h100", "a100-80", "l4")]
    assert [(s.max_seqs, s.max_batched_tokens) for s in sizes] == [
        (1_024, 16_384), (1_024, 8_192), (1_024, 8_192), (256, 2_048), (256, 2_048),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wrong", [{"max_seqs": 0}, {"max_seqs": 9, "max_batched_tokens": 8}, {"memory_share": 1.5}]
)
def test_limits_that_cannot_be(wrong: dict[str, float]) -> None:
    with pytest.raises(SpecError):
        EngineLimits(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["h200:0", "h300:8", "h200:8:8", "", "h200:-1", "h200:99999"])
def test_gpus_that_are_not_in_the_table(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        find_devices(text)
    assert "h200" in str(caught.value.hint)


def test_more_gpus_than_are_planned_together() -> None:
    assert find_devices("h200:64")[1] == 64
    with pytest.raises(SpecError, match="65 devices"):
        find_devices("h200:65")


def test_more_stages_than_layers() -> None:
    ranking = ranked("smollm2-135m-instruct", "h100:64", SMALL.first(2), quantizations=["bf16"])
    assert reasons(ranking, RankLayout(pp=32)) == ["30 layers are fewer than pp 32"]


def test_gpus_by_their_other_names() -> None:
    assert find_devices("A100:4") == (DEVICES["a100-80"], 4)
    assert find_devices("h100-sxm") == (DEVICES["h100"], 1)


def test_every_device_says_where_its_figures_are_from_and_is_a_device() -> None:
    for name, device in DEVICES.items():
        assert device.name == name
        assert "data sheet" in device.source or "white paper" in device.source
        assert 20 << 30 < device.memory_bytes < 300 << 30
        # a sparse figure beside a dense one would break this ratio
        if "fp8" in device.flops:
            assert device.flops["fp8"] == pytest.approx(2 * device.flops["bf16"], rel=0.03)


def test_default_traffic_on_both_big_models_has_plans_that_keep_up() -> None:
    for name in ("llama-3.1-70b", "qwen3-235b-a22b"):
        ranking = ranked(name, "h200:8", default_traffic().first(60))
        assert ranking.plans[0].breach is None
