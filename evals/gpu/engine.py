"""Tokens a second of the local engine: with and without graphs, greedy and sampled, by batch.

Weights are in bfloat16. Each figure is of a second run, when kernels and graphs are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from typing import TYPE_CHECKING, Literal

from evals.engine.rows import Lookup, Row
from evals.gpu.bench import Bench
from evals.gpu.local_engine import PROMPTS, asking, autoregressive

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def rows(bench: Bench) -> Iterator[Row]:
    """One system with graphs, and one without."""
    yield from _measured(bench, "graphs", "auto")
    yield from _measured(bench, "no graphs", "off")


def _measured(bench: Bench, system: str, graphs: Literal["auto", "off"]) -> Iterator[Row]:
    engine, network = autoregressive(bench.path, bench.options(dtype="bfloat16", graphs=graphs))
    tokens = bench.of(128, 4)
    for batch in (1, 2) if bench.dry else (1, 8, 32):
        for temperature in (0.0, 0.8):
            case = f"engine, {batch} {'sampled' if temperature else 'greedy'}"
            texts = islice(cycle(PROMPTS), batch)
            asked = [
                asking(text, tokens, temperature, seed=number) for number, text in enumerate(texts)
            ]
            engine.answers(asked)
            before = engine.batcher.forwards
            _, seconds = engine.answers(asked)
            passes = engine.batcher.forwards - before
            yield Row(case, system, "tokens_per_s", batch * tokens / seconds, "tokens/s")
            yield Row(case, system, "pass_ms", 1000 * seconds / passes, "ms")
            yield Row(case, system, "passes", passes, "passes")
    replayed = 0 if network.graphs is None else network.graphs.replays
    yield Row("engine", system, "graph_replays", replayed, "passes")
    if network.graphs is not None and network.graphs.fallback is not None:
        why = network.graphs.fallback.reason
        yield Row("engine", system, f"fell back to plain passes: {why}", None, "")


def panel(axes: Axes, figures: Lookup) -> None:
    """Tokens a second of each batch."""
    for system in ("graphs", "no graphs"):
        points = [
            (int(case.split()[1]), value)
            for (case, name), value in figures.of("tokens_per_s").items()
            if name == system and case.endswith("greedy")
        ]
        axes.plot(*zip(*points, strict=True), marker="o", label=system)
    axes.set_xlabel("requests decoded together")
    axes.set_ylabel("tokens a second")
    axes.set_title("local engine, greedy")
    axes.legend(frameon=False)
