"""This CPU as a `Device`. No figure comes from the model or a configuration that is compared.

Measured in the same run: the speed of memory and of products by micro-benchmarks (`probe`), one
process of two threads for a single rank, two of one thread at the same time for two ranks; the
engine's own time by serving narrow models of random weights, alone and 16 at a time.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from evals.plan_serve.configurations import KV_BYTES, Configuration, Number
from evals.plan_serve.load import Measured, send
from evals.plan_serve.model_files import narrow
from evals.plan_serve.server import ServerFailed, serving
from weft.serving.plan.hardware import Device, Efficiency
from weft.serving.plan.traffic import Traffic, TrafficRequest

_SHALLOW, _DEEP = 2, 16
_TOGETHER = 16
_PROBE_S = 240.0
_Rates = Mapping[Number, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Probed:
    """What `probe` printed, by number format; and the rate of copying memory."""

    rates: _Rates
    copy_bytes_s: float


@dataclass(frozen=True, slots=True)
class Overheads:
    """The engine's own time, in seconds: as `Efficiency` and `Device` name it."""

    step_s: float
    layer_s: float
    sequence_s: float
    hop_s: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was measured of this machine. `one` is for one rank, `two` for each of two."""

    one: Probed
    two: Probed
    overheads: Overheads

    def device(self, configuration: Configuration) -> Device:
        """This CPU as one rank of the configuration sees it."""
        seen = self.one if configuration.layout.ranks == 1 else self.two
        rates, costs = seen.rates[configuration.number], self.overheads
        efficiency = Efficiency(1.0, 1.0, 1.0, 1.0, costs.step_s, costs.layer_s, costs.sequence_s)
        return Device(
            name="cpu",
            title="this CPU",
            flops={configuration.number: rates["flops"]},
            memory_bytes=KV_BYTES,
            bandwidth_bytes_s=rates["bandwidth_bytes_s"],
            link_bytes_s=seen.copy_bytes_s,
            source="measured",
            hop_s=costs.hop_s,
            efficiency=efficiency,
        )

    def figures(self) -> dict[str, float]:
        """All of it by name."""
        found: dict[str, float] = dict(asdict(self.overheads))
        for name, probed in (("one", self.one), ("two", self.two)):
            found[f"{name}_copy_bytes_s"] = probed.copy_bytes_s
            for number, rates in probed.rates.items():
                found |= {f"{name}_{number}_{rate}": value for rate, value in rates.items()}
        return found


def calibrate(folder: Path) -> Calibration:
    """Measure this machine, in about two minutes. Raises: `ServerFailed`."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    (one,) = _probe([(2, cores)])
    halves = _probe([(1, [core]) for core in cores])
    return Calibration(one, _mean(halves), _overheads(folder))


def _probe(processes: list[tuple[int, list[int]]]) -> list[Probed]:
    """Probes that run at the same time, each with so many threads on its cores."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "evals.plan_serve.probe", str(threads), *map(str, cores)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for threads, cores in processes
    ]
    found = []
    for process in started:
        out, _ = process.communicate(timeout=_PROBE_S)
        if process.returncode:
            raise ServerFailed("the probe of this CPU failed")
        said = json.loads(out.splitlines()[-1])
        found.append(Probed({"bf16": said["bf16"], "fp32": said["fp32"]}, said["copy_bytes_s"]))
    return found


def _mean(probes: list[Probed]) -> Probed:
    rates: dict[Number, dict[str, float]] = {
        number: {
            name: sum(probe.rates[number][name] for probe in probes) / len(probes)
            for name in ("bandwidth_bytes_s", "flops")
        }
        for number in ("bf16", "fp32")
    }
    return Probed(rates, sum(probe.copy_bytes_s for probe in probes) / len(probes))


def _overheads(folder: Path) -> Overheads:
    """A step of one sequence in a shallow, a deep and a cut model, and of 16 in the deep one."""
    shallow, _ = _steps(folder, _SHALLOW, Configuration("calibration"))
    deep, together = _steps(folder, _DEEP, Configuration("calibration"))
    cut, _ = _steps(folder, _DEEP, Configuration("calibration", tp=2))
    layer = max(0.0, (deep - shallow) / (_DEEP - _SHALLOW))
    sequence = max(0.0, (together - deep) / (_TOGETHER - 1))
    # a sum over two ranks is two messages, after the embedding and twice in a layer; then the head
    messages = 2 * (2 * _DEEP + 1) + 1
    return Overheads(
        step_s=max(0.0, shallow - _SHALLOW * layer - sequence),
        layer_s=layer,
        sequence_s=sequence,
        hop_s=max(0.0, (cut - deep) / messages),
    )


def _steps(folder: Path, layers: int, configuration: Configuration) -> tuple[float, float]:
    """Seconds for each token of one sequence alone, and of 16 at a time."""
    model = folder / f"narrow_{layers}"
    if not model.is_dir():
        narrow(folder, layers)
    alone = Traffic("alone", (TrafficRequest(0.0, 8, 128),))
    many = Traffic("many", tuple(TrafficRequest(0.0, 8, 128) for _ in range(_TOGETHER)))
    with serving(configuration.spec(str(model)), folder / "calibration.log") as server:
        asyncio.run(send(server.url, many, 0))  # warm-up
        return _fastest(server.url, alone), _fastest(server.url, many)


def _fastest(url: str, traffic: Traffic) -> float:
    """The best of three rounds: whatever disturbs makes it longer."""
    rounds = [Measured.of(asyncio.run(send(url, traffic, seed))) for seed in (1, 2, 3)]
    return min(one.tpot_p50_s for one in rounds)
