"""The parts of the planner's evaluation that need no server."""

from __future__ import annotations

import pytest

from evals.engine.rows import Row
from evals.plan_serve.__main__ import METRICS, correlations, table
from evals.plan_serve.calibration import Calibration, Overheads, Probed
from evals.plan_serve.configurations import FULL, QUICK, Configuration, traffic
from evals.plan_serve.correlation import ranks, spearman
from evals.plan_serve.load import Answer, Measured
from evals.plan_serve.prediction import predict, predicted_kv_tokens
from tests.serving.plan.test_architecture import shape

PROBED = Probed(
    {
        "bf16": {"bandwidth_bytes_s": 25e9, "flops": 300e9},
        "fp32": {"bandwidth_bytes_s": 25e9, "flops": 150e9},
    },
    5e9,
)
HALF = Probed(
    {
        number: {name: value / 2 for name, value in rates.items()}
        for number, rates in PROBED.rates.items()
    },
    5e9,
)
CALIBRATION = Calibration(PROBED, HALF, Overheads(2e-3, 1e-4, 1e-4, 1e-5))
MODEL = shape(
    "llama-3.1-8b", hidden_size=768, num_attention_heads=8, num_key_value_heads=4, head_dim=64,
    intermediate_size=2048, num_hidden_layers=16, vocab_size=8192,
)  # fmt: skip


def test_ranks_and_their_correlation() -> None:
    assert ranks([30, 10, 20, 10]) == [4, 1.5, 3, 1.5]
    assert spearman([1, 2, 3, 4], [10, 20, 30, 99]) == pytest.approx(1)
    assert spearman([1, 2, 3, 4], [9, 7, 5, 3]) == pytest.approx(-1)
    assert spearman([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]) == pytest.approx(0.8)
    assert spearman([1, 1, 1], [1, 2, 3]) == 0


def test_measured_figures() -> None:
    answers = [Answer(1.0, 1.5, 3.5, 5), Answer(2.0, 3.0, 5.0, 11)]
    found = Measured.of(answers)
    assert found.tokens_s == 16 / 4
    assert found.latency_mean_s == pytest.approx(2.75)
    assert found.ttft_p50_s == 0.5
    assert found.tpot_p50_s == pytest.approx(0.2)


def test_predictions_move_as_they_should() -> None:
    asked = traffic(40)
    said = {c.name: predict(MODEL, c, CALIBRATION, asked) for c in FULL}
    assert said["base"].tokens_s > said["fp32"].tokens_s > said["fp32_seqs_2"].tokens_s
    assert said["seqs_8"].latency_mean_s < said["seqs_2"].latency_mean_s


def test_kv_caches_of_cut_models() -> None:
    base = predicted_kv_tokens(MODEL, Configuration("base"))
    assert base == (1 << 30) // (16 * 2 * 4 * 64 * 2 * 128) * 128
    for configuration in (Configuration("tp", tp=2), Configuration("pp", pp=2)):
        assert predicted_kv_tokens(MODEL, configuration) == 2 * base
    assert predicted_kv_tokens(MODEL, Configuration("dp", dp=2)) == base
    assert predicted_kv_tokens(MODEL, Configuration("fp32", number="fp32")) == base // 2


def test_every_metric_gets_a_coefficient_and_a_column() -> None:
    rows = [
        Row(name, system, metric, value, unit)
        for value, name in enumerate(("a", "b", "c"), 1)
        for metric, unit in (*METRICS.items(), ("kv_tokens", "tokens"))
        for system in ("predicted", "measured")
    ]
    found = correlations(rows)
    assert [(row.metric, row.value) for row in found] == [
        (f"spearman_{metric}", pytest.approx(1)) for metric in METRICS
    ]
    shown = table(rows + found)
    assert "spearman_tokens_s: 1.00" in shown
    assert len({c.name for c in FULL}) == len(FULL) >= 6 == len(QUICK)
