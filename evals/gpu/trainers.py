"""Every trainer for a few steps: seconds a step, and that the loss is a number."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from evals.engine.rows import Row
from evals.gpu.bench import Bench
from evals.gpu.local_engine import PROMPTS
from weft.serving.weights import locate
from weft.training.diffusion import spec as diffusion
from weft.training.distillation import DistillationOptions
from weft.training.drafters import session
from weft.training.drafters import spec as drafters
from weft.training.frame import StepProgress

_SMALL: Final[Mapping[str, int]] = {
    "inner": 32,
    "vocabulary": 64,
    "unrolled": 2,
    "tokens": 64,
    "heads": 2,
    "prompts": 2,
    "ahead": 2,
    "points": 4,
    "places": 4,
    "rank": 2,
    "block": 4,
}
"""Settings of drafters in a dry run, where they have one of that name."""
_DIFFUSION: Final[Mapping[str, Mapping[str, int]]] = {
    "block": {"block": 4, "rank": 2, "grow": 1, "held_out": 2},
    "dparallel": {"texts": 2, "slots": 4, "examined": 1},
    "learn2pd": {"texts": 6, "slots": 8, "hidden": 6},
}
"""By kind: few and small texts; what is measured is a step."""


def rows(bench: Bench) -> Iterator[Row]:
    """Drafters on the model of the bench, diffusion models on the list model."""
    prompts = bench.folder / "prompts.txt"
    prompts.write_text(
        "\n".join(f"{text} {n}".replace("\n", " ") for n in range(4) for text in PROMPTS)
    )
    for name in sorted(drafters.KINDS):
        yield from _timed(name, lambda hear, kind=name: _drafter(bench, kind, prompts, hear))
    for name in sorted(diffusion.KINDS):
        if "device" not in diffusion.kind_of(name).takes:
            yield Row("trainers", name, "skipped: it is trained on the CPU", None, "")
        else:
            yield from _timed(name, lambda hear, kind=name: _diffusion(bench, kind, hear))


Hear = Callable[[object], None]


def _drafter(bench: Bench, name: str, prompts: Path, hear: Hear) -> None:
    settings = drafters.kind_of(name).settings
    small = {key: _SMALL.get(key, value) for key, value in settings.items()}
    job = session.DrafterTrainingJob(
        kind=name,
        model=bench.path,
        prompts=str(prompts),
        out=bench.folder / f"trained-{name}",
        corpus=bench.folder / "corpus.safetensors",
        writing=DistillationOptions(max_tokens=bench.of(64, 8)),
        schedule={"steps": bench.of(40, 2), "texts": bench.of(8, 2), "keep_every": bench.of(40, 2)},
        settings=small if bench.dry else settings,
        threads=1 if bench.dry else None,
        device=bench.device,
    )
    session.train(job, on_news=hear)


def _diffusion(bench: Bench, name: str, hear: Hear) -> None:
    job = diffusion.DiffusionTrainingJob(
        name,
        bench.folder / f"trained-{name}",
        model=bench.chat if name == "block" else locate("list-full"),
        schedule={
            "steps": bench.of(40, 2),
            "texts": 2,
            "keep_every": bench.of(40, 2),
            "longest": 400,
        },
        settings=_DIFFUSION.get(name, {}),
        threads=1 if bench.dry else None,
        device=bench.device,
    )
    diffusion.kind_of(name).train(job, False, diffusion.TrainingListener(hear))


def _timed(name: str, train: Callable[[Hear], Any]) -> Iterator[Row]:
    """Raises: nothing; a kind that fails says why, and the others go on."""
    steps: list[tuple[float, float]] = []

    def hear(news: object) -> None:
        if isinstance(news, StepProgress):
            steps.append((time.perf_counter(), news.loss))

    try:
        train(hear)
    except Exception as error:  # noqa: BLE001 - it is told, and the others go on
        yield Row("trainers", name, f"failed: {type(error).__name__}: {error}", None, "")
        return
    (first, _), (last, loss) = steps[0], steps[-1]
    if not math.isfinite(loss):
        yield Row("trainers", name, f"failed: the loss is {loss}", None, "")
        return
    if len(steps) > 1:
        yield Row("trainers", name, "step_ms", 1000 * (last - first) / (len(steps) - 1), "ms")
    yield Row("trainers", name, "loss", loss, "nats")
