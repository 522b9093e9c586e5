"""`python -m evals.plan_serve [--quick] [--json FILE] [--plot FILE]`.

The planner's predictions for configurations of vLLM on this CPU beside what they really do with
the same requests, and their rank correlation; and the size of the KV cache beside vLLM's own.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from evals.engine.rows import Row
from evals.plan_serve.calibration import Calibration, calibrate
from evals.plan_serve.configurations import FULL, QUICK, Configuration, traffic
from evals.plan_serve.correlation import spearman
from evals.plan_serve.load import Measured, send
from evals.plan_serve.model_files import target
from evals.plan_serve.prediction import predict, predicted_kv_tokens
from evals.plan_serve.server import ServerFailed, serving
from evals.results import environment, write_results
from weft.serving.plan.architecture import Architecture
from weft.serving.plan.config import read_config
from weft.serving.plan.traffic import Traffic

METRICS = {
    "tokens_s": "tokens/s",
    "latency_mean_s": "s",
    "ttft_p50_s": "s",
    "tpot_p50_s": "s",
}


def measure(
    folder: Path, configuration: Configuration, asked: Traffic, rounds: int
) -> tuple[Measured, int]:
    """The best round by throughput, and the tokens vLLM says its KV cache holds."""
    log = folder / f"{configuration.name}.log"
    with serving(configuration.spec(str(folder / "target")), log) as server:
        asyncio.run(send(server.url, asked.first(8), 1_000))  # warm-up
        found = [Measured.of(asyncio.run(send(server.url, asked, seed))) for seed in range(rounds)]
        return max(found, key=lambda one: one.tokens_s), server.kv_tokens


def compare(
    folder: Path,
    model: Architecture,
    configuration: Configuration,
    calibration: Calibration,
    asked: Traffic,
    rounds: int,
) -> list[Row]:
    """All rows of one configuration."""
    said = predict(model, configuration, calibration, asked)
    seen, kv_tokens = measure(folder, configuration, asked, rounds)
    rows = [
        Row(configuration.name, system, metric, getattr(source, metric), unit)
        for metric, unit in METRICS.items()
        for system, source in (("predicted", said), ("measured", seen))
    ]
    expected = predicted_kv_tokens(model, configuration)
    rows.append(Row(configuration.name, "predicted", "kv_tokens", expected, "tokens"))
    rows.append(Row(configuration.name, "measured", "kv_tokens", kv_tokens, "tokens"))
    return rows


def correlations(rows: Sequence[Row]) -> list[Row]:
    """Spearman's coefficient over the configurations, for each metric."""
    found = []
    for metric in METRICS:
        said, seen = (
            [float(r.value or 0) for r in rows if (r.system, r.metric) == (system, metric)]
            for system in ("predicted", "measured")
        )
        found.append(Row("ranking", "predicted", f"spearman_{metric}", spearman(said, seen), "rho"))
    return found


def evaluate(configurations: Sequence[Configuration], requests: int, rounds: int) -> list[Row]:
    """All rows. Raises: `ServerFailed`."""
    with tempfile.TemporaryDirectory(prefix="weft-plan-") as name:
        folder = Path(name)
        model = read_config(target(folder) / "config.json", "target")
        calibration = calibrate(folder)
        rows = [
            Row("calibration", "measured", metric, value, "SI")
            for metric, value in calibration.figures().items()
        ]
        asked = traffic(requests)
        for configuration in configurations:
            print(f"{configuration.name} …", file=sys.stderr)
            rows += compare(folder, model, configuration, calibration, asked, rounds)
    return rows + correlations(rows)


def table(rows: Sequence[Row]) -> str:
    """A line for each configuration, predicted beside measured; then the coefficients."""
    value = {(r.case, r.system, r.metric): float(r.value or 0) for r in rows}
    cases = list(dict.fromkeys(r.case for r in rows if r.metric == "kv_tokens"))
    names = (*METRICS, "kv_tokens")
    lines = ["predicted / measured", " " * 14 + "".join(f"{name:>20}" for name in names)]
    for case in cases:
        cells = [
            f"{value[case, 'predicted', metric]:.{digits}f} /"
            f" {value[case, 'measured', metric]:.{digits}f}"
            for metric, digits in zip(names, (0, 2, 3, 4, 0), strict=True)
        ]
        lines.append(f"{case:14}" + "".join(f"{cell:>20}" for cell in cells))
    lines += [f"{r.metric}: {r.value:.2f}" for r in rows if r.case == "ranking"]
    lines += [f"calibrated {r.metric}: {r.value:.4g}" for r in rows if r.case == "calibration"]
    return "\n".join(lines)


def draw(rows: Sequence[Row], path: Path) -> None:
    """Predicted over measured, for throughput and mean latency."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    value = {(r.case, r.system, r.metric): float(r.value or 0) for r in rows}
    cases = list(dict.fromkeys(r.case for r in rows if r.metric == "kv_tokens"))
    shown = {"tokens_s": "output tokens per second", "latency_mean_s": "mean latency, s"}
    figure, both = plt.subplots(1, 2, figsize=(9.6, 4.6), layout="constrained")
    for axes, (metric, title) in zip(both, shown.items(), strict=True):
        seen = [value[case, "measured", metric] for case in cases]
        said = [value[case, "predicted", metric] for case in cases]
        axes.scatter(seen, said, color="#0b6e4f", zorder=3)
        for case, x, y in zip(cases, seen, said, strict=True):
            axes.annotate(case, (x, y), textcoords="offset points", xytext=(5, 4), fontsize=8)
        ends = [0, 1.1 * max(*seen, *said)]
        axes.plot(ends, ends, color="#a3a3a3", linewidth=1, zorder=1)
        rho = value["ranking", "predicted", f"spearman_{metric}"]
        axes.set(xlabel="measured", ylabel="predicted", title=f"{title} (Spearman {rho:.2f})")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _terminated(_number: int, _frame: FrameType | None) -> None:
    sys.exit(143)


def main() -> None:
    """Evaluate; print the table; write what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m evals.plan_serve",
        description="How well deployments of vLLM on this CPU are predicted.",
    )
    parser.add_argument("--quick", action="store_true", help="six configurations, two rounds each")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw predicted over measured")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, _terminated)  # servers are ended on the way out
    try:
        rows = evaluate(QUICK, 40, 2) if arguments.quick else evaluate(FULL, 64, 3)
    except ServerFailed as failed:
        raise SystemExit(str(failed)) from failed
    print(table(rows))
    if arguments.json:
        write_results(arguments.json, rows, environment(("vllm", "torch")))
    if arguments.plot:
        draw(rows, arguments.plot)


if __name__ == "__main__":
    main()
