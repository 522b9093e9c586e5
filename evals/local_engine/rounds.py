"""Interleaved rounds: every system in a process of its own, taking turns at going first."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from evals.engine.rows import Row, spread
from evals.local_engine.load import CASES, Load, command
from evals.local_engine.systems import ROOT, System

_LIMIT_S = 600


@dataclass(frozen=True, slots=True)
class Effort:
    """How often to repeat, how much a stream writes, how long the long prompt is."""

    rounds: int
    tokens: int
    prompt_words: int


FULL = Effort(rounds=5, tokens=128, prompt_words=200)
QUICK = Effort(rounds=1, tokens=32, prompt_words=50)


@dataclass(slots=True)
class Samples:
    """By case one entry a round; `failure` says why there are no more."""

    cases: dict[str, list[float]] = field(default_factory=dict)
    failure: str = ""

    def add(self, said: Mapping[str, float]) -> None:
        """The figures of one round."""
        for case, value in said.items():
            self.cases.setdefault(case, []).append(value)


def measure(systems: Sequence[System], effort: Effort, threads: int) -> dict[str, Samples]:
    """Samples by system. One that fails is left out of the rounds that follow."""
    samples = {system.name: Samples() for system in systems}
    for number in range(effort.rounds):
        for system in systems if number % 2 == 0 else reversed(systems):
            found = samples[system.name]
            if found.failure:
                continue
            load = Load(system.model, threads, effort.tokens, effort.prompt_words, number)
            try:
                found.add(run(system, load))
            except (subprocess.SubprocessError, ValueError, OSError) as error:
                found.failure = _reason(error)
    return samples


def run(system: System, load: Load) -> dict[str, float]:
    """What one process says. Raises: `SubprocessError`, `OSError`; `ValueError` for no figures."""
    done = subprocess.run(
        command(system.python, system.module, load),
        cwd=ROOT,
        env=system.variables(),
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=True,
    )
    said = json.loads((done.stdout.strip().splitlines() or [""])[-1])
    return {case: float(said[case]) for case in CASES if case in said}


def timing_rows(samples: Mapping[str, Samples]) -> list[Row]:
    """Medians with their spread, and medians of each round's ratios to the peers."""
    rows: list[Row] = []
    for system, found in samples.items():
        if found.failure:
            rows.append(Row("all", system, f"skipped: {found.failure}", None, ""))
        for case, values in found.cases.items():
            unit = "s" if case == "first_token" else "tokens/s"
            metric = "s" if case == "first_token" else "tokens_per_s"
            low, high = spread(values)
            rows.append(Row(case, system, metric, median(values), unit))
            rows.append(Row(case, system, f"{metric}_p10", low, unit))
            rows.append(Row(case, system, f"{metric}_p90", high, unit))
            rows.append(Row(case, system, "rounds", len(values), "rounds"))
            rows += _ratios(case, system, values, samples)
    return rows


def _ratios(
    case: str, system: str, values: Sequence[float], samples: Mapping[str, Samples]
) -> list[Row]:
    rows = []
    for peer in ("llama_cpp", "vllm_cpu"):
        others = samples[peer].cases.get(case, []) if peer in samples else []
        if peer != system and others:
            ratio = median(a / b for a, b in zip(values, others, strict=False))
            rows.append(Row(case, system, f"ratio_to_{peer}", ratio, "x"))
    return rows


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = (error.stderr or "").strip().splitlines()
        return lines[-1] if lines else f"exit status {error.returncode}"
    return str(error)
