"""The frame of all trainers: steps, their learning rate, checkpoints, and going on from one.

Knows neither what is learnt nor from what. All chance of a step comes of the seed and the step's
number, so that training in pieces ends, bit for bit, where training in one go does.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
import torch

from weft.core.errors import InputError
from weft.decoding import tensor_file

_LEAST_RATE: Final = 0.01
"""Of the highest learning rate, at the end."""


class CountedBatch(Protocol):
    """What one step learns from."""

    @property
    def learnt_tokens(self) -> int:
        """How many tokens of it are learnt."""


BatchT = TypeVar("BatchT", bound=CountedBatch)
BatchT_co = TypeVar("BatchT_co", bound=CountedBatch, covariant=True)
BatchT_contra = TypeVar("BatchT_contra", bound=CountedBatch, contravariant=True)


class BatchSource(Protocol[BatchT_co]):
    """Where batches come from."""

    def draw(self, rng: np.random.Generator, texts: int, longest: int) -> BatchT_co:
        """`texts` of them, of each the first `longest` tokens. All chance is from `rng`."""


class TrainingObjective(Protocol[BatchT_contra]):
    """What is learnt, and how wrong it is. A frozen teacher is no part of `module`."""

    module: torch.nn.Module

    def loss(self, batch: BatchT_contra, rng: np.random.Generator) -> torch.Tensor:
        """One number, to be made smaller. All chance is taken from `rng`."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """`steps` of `texts` each, of which the first `longest` tokens are read.

    The rate rises to `rate` over the first `warm_up` of the steps, then falls as a cosine. `clip`
    is the largest norm of a gradient, 0 for none. A checkpoint is left every `keep_every` steps.

    Raises: `ValueError` for a value out of range.
    """

    steps: int
    texts: int = 4
    longest: int = 512
    rate: float = 1e-3
    warm_up: float = 0.1
    decay: float = 0.0
    clip: float = 1.0
    seed: int = 0
    keep_every: int = 100

    def __post_init__(self) -> None:
        whole = dict.fromkeys(("steps", "texts", "longest", "keep_every"), "at least 1")
        never_less = dict.fromkeys(("decay", "clip", "seed"), "at least 0")
        fits = {
            **{name: getattr(self, name) >= 1 for name in whole},
            **{name: getattr(self, name) >= 0 for name in never_less},
            "rate": 0.0 < self.rate < math.inf,
            "warm_up": 0.0 <= self.warm_up < 1.0,
        }
        right = {**whole, **never_less, "rate": "a number above 0", "warm_up": "from 0, below 1"}
        for name, fine in fits.items():
            if not fine:
                found = getattr(self, name)
                raise ValueError(f"nothing can be trained with {name} {found}: it is {right[name]}")

    def rate_at(self, step: int) -> float:
        """The learning rate of step number `step`, from 0."""
        rising = self.warm_up * self.steps
        if step < rising:
            return self.rate * (step + 1) / (rising + 1)
        over = (step - rising) / max(self.steps - rising, 1)
        falling = 0.5 * (1.0 + math.cos(math.pi * over))
        return self.rate * (_LEAST_RATE + (1.0 - _LEAST_RATE) * falling)

    @property
    def told(self) -> str:
        """All that decides what is learnt."""
        decides = {name: value for name, value in asdict(self).items() if name != "keep_every"}
        return json.dumps(decides, sort_keys=True)


@dataclass(frozen=True, slots=True)
class StepProgress:
    """After `step` of `steps`: the loss of that step, and what this run has done so far."""

    step: int
    steps: int
    loss: float
    tokens: int
    elapsed_s: float
    done_here: int

    @property
    def tokens_per_s(self) -> float:
        """Tokens of texts that were learnt from."""
        return self.tokens / self.elapsed_s if self.elapsed_s > 0.0 else 0.0

    @property
    def remaining_s(self) -> float:
        """If the rest goes as fast."""
        return (self.steps - self.step) * self.elapsed_s / self.done_here


OptimizerFactory = Callable[[Mapping[str, torch.nn.Parameter], Schedule], torch.optim.Optimizer]
"""Makes what moves parameters, given by name. Of each it may remember tensors only."""


def _adamw(learnt: Mapping[str, torch.nn.Parameter], schedule: Schedule) -> torch.optim.Optimizer:
    return torch.optim.AdamW(
        learnt.values(), lr=schedule.rate, betas=(0.9, 0.95), weight_decay=schedule.decay
    )


class Trainer(Generic[BatchT]):
    """Teaches a lesson, with AdamW where no other `optimiser` is given. `step` counts the steps
    that are done.

    The parameters, those of the optimiser and `step` stand in the file `checkpoint`, once there is
    one.
    """

    def __init__(
        self,
        lesson: TrainingObjective[BatchT],
        source: BatchSource[BatchT],
        schedule: Schedule,
        checkpoint: Path,
        clock: Callable[[], float] = time.monotonic,
        optimiser: OptimizerFactory | None = None,
    ) -> None:
        self.step = 0
        self._lesson = lesson
        self._source = source
        self._schedule = schedule
        self._checkpoint = checkpoint
        self._clock = clock
        self._learnt = dict(lesson.module.named_parameters())
        self._optimiser = (optimiser or _adamw)(self._learnt, schedule)

    def run(
        self,
        on_step: Callable[[StepProgress], None] = lambda _progress: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> bool:
        """The steps that are left. False when `stop` said so after one of them: then a checkpoint
        is there, and another trainer can go on from it.

        Raises: `InputError` when the loss is no number any more, `OSError`.
        """
        began, tokens, first = self._clock(), 0, self.step
        while self.step < self._schedule.steps:
            loss, learnt = self._one()
            self.step += 1
            tokens += learnt
            stopped = stop()
            if stopped or self.step % self._schedule.keep_every == 0:
                self.keep()
            elapsed = self._clock() - began
            on_step(
                StepProgress(
                    self.step, self._schedule.steps, loss, tokens, elapsed, self.step - first
                )
            )
            if stopped and self.step < self._schedule.steps:
                return False
        return True

    def keep(self) -> None:
        """Leave a checkpoint. Raises: `OSError`."""
        tensors = dict(self._state())
        notes = {"step": str(self.step), "schedule": self._schedule.told}
        tensor_file.write(self._checkpoint, tensors, notes)

    def resume(self) -> None:
        """Go on from the checkpoint.

        Raises: `InputError` where there is none, or it is of another training.
        """
        hint = f"take another folder, or remove {self._checkpoint} to begin anew without --resume"
        try:
            tensors, notes = tensor_file.read(self._checkpoint)
        except tensor_file.TensorFileError as error:
            raise InputError(f"there is no checkpoint to go on from: {error}", hint=hint) from error
        if notes.get("schedule") != self._schedule.told:
            told = _differing(notes.get("schedule", ""), self._schedule)
            raise InputError(f"{self._checkpoint} is of another training{told}", hint=hint)
        try:
            self._take(tensors)
            self.step = int(notes["step"])
        except (KeyError, ValueError, RuntimeError) as error:
            reason = str(error).partition("\n")[0]
            message = f"{self._checkpoint} fits no such training: {reason}"
            raise InputError(message, hint=hint) from error

    def _one(self) -> tuple[float, int]:
        """One step: its loss, and how many tokens it learnt from."""
        schedule = self._schedule
        rng = np.random.default_rng([schedule.seed, self.step])
        batch = self._source.draw(rng, schedule.texts, schedule.longest)
        for group in self._optimiser.param_groups:
            group["lr"] = schedule.rate_at(self.step)
        self._optimiser.zero_grad(set_to_none=True)
        loss = self._lesson.loss(batch, rng)
        if not loss.isfinite():
            raise InputError(
                f"step {self.step}: the loss is {float(loss.detach())}",
                hint="train at a lower rate",
            )
        loss.backward()
        if schedule.clip:
            torch.nn.utils.clip_grad_norm_(self._learnt.values(), schedule.clip)
        self._optimiser.step()
        return float(loss.detach()), batch.learnt_tokens

    def _state(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The parameters by name, and what the optimiser remembers of each."""
        for name, parameter in self._learnt.items():
            yield f"learnt.{name}", parameter
            remembered: Mapping[str, torch.Tensor] = self._optimiser.state[parameter]
            for key, value in remembered.items():
                yield f"{key}.{name}", value

    def _take(self, tensors: Mapping[str, torch.Tensor]) -> None:
        state: dict[int, dict[str, torch.Tensor]] = {}
        numbers = self._numbers()
        for name, parameter in self._learnt.items():
            stored = tensors[f"learnt.{name}"]
            if stored.shape != parameter.shape:
                raise ValueError(f"{name} is {list(stored.shape)}, not {list(parameter.shape)}")
            with torch.no_grad():
                parameter.copy_(stored)
        for full, tensor in tensors.items():
            key, _, name = full.partition(".")
            if key != "learnt":  # there is nothing of what no loss has reached yet
                state.setdefault(numbers[name], {})[key] = tensor
        groups = self._optimiser.state_dict()["param_groups"]
        self._optimiser.load_state_dict({"state": state, "param_groups": groups})

    def _numbers(self) -> dict[str, int]:
        """By which numbers the optimiser knows the parameters."""
        names = {id(parameter): name for name, parameter in self._learnt.items()}
        known = (p for group in self._optimiser.param_groups for p in group["params"])
        return {names[id(parameter)]: number for number, parameter in enumerate(known)}


def _differing(told: str, schedule: Schedule) -> str:
    """What of a checkpoint's schedule is not that of `schedule`; empty where it cannot be read."""
    try:
        was = json.loads(told)
        now = json.loads(schedule.told)
        found = [f"{name} {was[name]}, not {now[name]}" for name in now if was[name] != now[name]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f": {'; '.join(found)}"


@dataclass(frozen=True, slots=True)
class TextsWritten:
    """A model is writing: so many of so many texts are there."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class EvaluationStarted:
    """What was trained is measured on `texts` that it did not learn from."""

    texts: int


TrainingNews = TextsWritten | StepProgress | EvaluationStarted
