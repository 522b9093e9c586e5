"""A whole training of a planner: from examples to a folder that `local:FOLDER` loads.

The folder has an adapter of the base model and its config, with the record of the training; beside
them, for each checkpoint, what it does on held-out examples.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import torch

from weft.core.errors import InputError
from weft.decoding.adapters.folder import FORMAT, OWN, FindModel, adapter_folder
from weft.decoding.config_fields import write_config
from weft.training.corpus import TokenBatch
from weft.training.diffusion.spec import CHECKPOINT, TrainingListener, prepare, run_steps
from weft.training.frame import EvaluationStarted, Schedule, StepProgress, Trainer
from weft.training.planner.objective import PlannerAccuracy, PlannerObjective
from weft.training.planner.texts import (
    PlannerBatches,
    PlannerExample,
    PlannerText,
    digest,
    encode,
)

ADAPTER: Final = "adapter.safetensors"
CURVE: Final = "curve.jsonl"
SNAPSHOTS: Final = "snapshots"
_JOB: Final = "job.json"


@dataclass(frozen=True, slots=True)
class PlannerTrainingJob:
    """A training to run.

    model       the folder of the chat model to begin with, or of a planner to train further
    find        locates the base of a planner by its name
    out         the folder of the planner
    train, test examples; the tools of the test are in no example to train on
    plan_form   the form of the prompts, as `Capabilities.plan_form` names it
    epochs      how often each example is read
    rank        of the low-rank updates
    lowest      the first layer that is trained
    snapshots   keep the planner of each checkpoint as a folder of its own
    record      facts about the data for the config
    """

    model: Path
    out: Path
    train: Sequence[PlannerExample]
    test: Sequence[PlannerExample]
    plan_form: str
    schedule: Schedule
    epochs: int = 1
    rank: int = 32
    lowest: int = 0
    threads: int | None = None
    device: str = "cpu"
    snapshots: bool = False
    find: FindModel | None = None
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannerTrainingResult:
    """A trained planner. `loss`: of the last step run. `after`: on held-out examples."""

    folder: Path
    steps: int
    examples: int
    loss: float | None
    after: PlannerAccuracy


def train(
    job: PlannerTrainingJob, resume: bool, listener: TrainingListener
) -> PlannerTrainingResult | None:
    """Train, or go on from the checkpoint; None when `listener.stop` returned true.

    Raises: `InputError` for an unsuitable model or data, a folder in use, or a checkpoint of
        another training; `OSError`.
    """
    prepare(job, job.schedule, resume)
    adapter = adapter_folder(job.model, job.find)
    base = job.model if adapter is None else adapter.base
    texts = encode(base, job.train, job.schedule.longest)
    held_out = encode(base, job.test, job.schedule.longest)
    batches = PlannerBatches(texts, job.schedule.texts, job.schedule.seed)
    schedule = replace(job.schedule, steps=job.epochs * batches.steps)
    _same_job(job, texts, resume)
    objective = PlannerObjective(base, job.device, job.rank, job.lowest)
    if adapter is not None:
        objective.resume_from(adapter.file)
    trainer = Trainer[TokenBatch](objective, batches, schedule, job.out / CHECKPOINT)
    if resume:
        trainer.resume()
        batches.step = trainer.step
    else:
        trainer.keep()
    before = {} if adapter is None else dict(adapter.own.within("trained").items())
    record = {**job.record, **({"before": before} if before else {})}
    run = _PlannerRun(
        replace(job, model=base, record=record), schedule, objective, texts, held_out, listener
    )
    losses = run_steps(trainer, listener, run.follow)
    if losses is None:
        return None
    after = run.examine(schedule.steps, losses[0] if losses else None)
    if after is None:
        return None
    run.save(job.out, schedule.steps, after)
    (job.out / CHECKPOINT).unlink(missing_ok=True)
    (job.out / _JOB).unlink(missing_ok=True)
    last = losses[0] if losses else None
    return PlannerTrainingResult(job.out, schedule.steps, len(texts), last, after)


class _PlannerRun:
    """What a training writes beside its checkpoint."""

    def __init__(
        self,
        job: PlannerTrainingJob,
        schedule: Schedule,
        objective: PlannerObjective,
        texts: Sequence[PlannerText],
        held_out: Sequence[PlannerText],
        listener: TrainingListener,
    ) -> None:
        self._job = job
        self._schedule = schedule
        self._objective = objective
        self._texts = texts
        self._held_out = held_out
        self._listener = listener
        self._elapsed_s = 0.0

    def follow(self, progress: StepProgress) -> None:
        """After a step: measure where it has a checkpoint."""
        self._elapsed_s = progress.elapsed_s
        if progress.step % self._schedule.keep_every or progress.step == progress.steps:
            return
        found = self.examine(progress.step, progress.loss)
        if found is not None and self._job.snapshots:
            self.save(self._job.out / SNAPSHOTS / f"{progress.step:06}", progress.step, found)

    def examine(self, step: int, loss: float | None) -> PlannerAccuracy | None:
        """Measure, and add a line to the curve. None when the training is stopped meanwhile."""
        self._listener.on_news(EvaluationStarted(len(self._held_out)))
        found = self._objective.examine(self._held_out, self._schedule.texts, self._listener.stop)
        if found is None:
            return None
        examples = min(step * self._schedule.texts, self._job.epochs * len(self._texts))
        row = {"step": step, "examples": examples, "loss": loss, **asdict(found)}
        row["elapsed_s"] = round(self._elapsed_s, 1)
        with (self._job.out / CURVE).open("a", encoding="utf-8") as curve:
            curve.write(json.dumps(row) + "\n")
        return found

    def save(self, folder: Path, step: int, found: PlannerAccuracy) -> None:
        """Write the planner. Raises: `OSError`."""
        folder.mkdir(parents=True, exist_ok=True)
        self._objective.save(folder / ADAPTER)
        own = {
            "format": FORMAT,
            "base": self._job.model.name,
            "adapter": ADAPTER,
            "plan_form": self._job.plan_form,
            "target": asdict(self._objective.target),
            "trained": {**self._record(step), "held_out": asdict(found)},
        }
        write_config(folder, {"model_type": self._objective.model_type, OWN: own})

    def _record(self, step: int) -> dict[str, Any]:
        schedule = self._schedule
        return {
            **self._job.record,
            "step": step,
            "steps": schedule.steps,
            "at_once": schedule.texts,
            "examples": len(self._texts),
            "tokens": sum(len(each.text.tokens) for each in self._texts),
            "epochs": self._job.epochs,
            "rank": self._job.rank,
            "lowest": self._job.lowest,
            "rate": schedule.rate,
            "seed": schedule.seed,
            "data": digest(self._texts),
            "device": self._job.device,
            "threads": torch.get_num_threads(),
            "machine": platform.machine(),
            "date": datetime.now(UTC).date().isoformat(),
        }


def _same_job(job: PlannerTrainingJob, texts: Sequence[PlannerText], resume: bool) -> None:
    """Write down what the training is of, or compare it. Raises: `InputError`, `OSError`."""
    what = {"data": digest(texts), "rank": job.rank, "lowest": job.lowest, "base": job.model.name}
    file = job.out / _JOB
    if not resume:
        file.write_text(json.dumps(what), encoding="utf-8")
        return
    try:
        was = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {error}", hint="begin in a new folder") from error
    for name, value in what.items():
        if not isinstance(was, dict) or was.get(name) != value:
            raise InputError(
                f"the training in {job.out} has another {name}",
                hint="give it the same data, model and rank, or name another folder",
            )
