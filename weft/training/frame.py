"""The training loop: steps, learning rate, checkpoints and resumption, for any objective.

All randomness of a step derives from the seed and the step's number, so that training in pieces
ends bit for bit like training in one run.
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
"""The final learning rate, relative to the highest."""


class CountedBatch(Protocol):
    """The batch of one step."""

    @property
    def learnt_tokens(self) -> int:
        """Number of trained tokens."""


BatchT = TypeVar("BatchT", bound=CountedBatch)
BatchT_co = TypeVar("BatchT_co", bound=CountedBatch, covariant=True)
BatchT_contra = TypeVar("BatchT_contra", bound=CountedBatch, contravariant=True)


class BatchSource(Protocol[BatchT_co]):
    """A source of batches."""

    def draw(self, rng: np.random.Generator, texts: int, longest: int) -> BatchT_co:
        """`texts` random texts, of each the first `longest` tokens; random by `rng` alone."""


class TrainingObjective(Protocol[BatchT_contra]):
    """A module with its loss. A frozen teacher is no part of `module`."""

    module: torch.nn.Module

    def loss(self, batch: BatchT_contra, rng: np.random.Generator) -> torch.Tensor:
        """The loss to minimise; random by `rng` alone."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """`steps` of `texts` each, of which the first `longest` tokens are read.

    The learning rate rises to `rate` over the first `warm_up` of the steps, then falls as a cosine.
    `clip` is the largest norm of a gradient, 0 for none. A checkpoint is written every `keep_every`
    steps.

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
                value = getattr(self, name)
                raise ValueError(f"nothing can be trained with {name} {value}: it is {right[name]}")

    def rate_at(self, step: int) -> float:
        """The learning rate of step number `step`, from 0."""
        rising = self.warm_up * self.steps
        if step < rising:
            return self.rate * (step + 1) / (rising + 1)
        over = (step - rising) / max(self.steps - rising, 1)
        falling = 0.5 * (1.0 + math.cos(math.pi * over))
        return self.rate * (_LEAST_RATE + (1.0 - _LEAST_RATE) * falling)

    @property
    def as_json(self) -> str:
        """Everything that determines the result of the training."""
        settings = {name: value for name, value in asdict(self).items() if name != "keep_every"}
        return json.dumps(settings, sort_keys=True)


@dataclass(frozen=True, slots=True)
class StepProgress:
    """After `step` of `steps`: the loss of that step, and the progress of this run."""

    step: int
    steps: int
    loss: float
    tokens: int
    elapsed_s: float
    done_here: int

    @property
    def tokens_per_s(self) -> float:
        """Trained tokens per second."""
        return self.tokens / self.elapsed_s if self.elapsed_s > 0.0 else 0.0

    @property
    def remaining_s(self) -> float:
        """Expected time of the remaining steps."""
        return (self.steps - self.step) * self.elapsed_s / self.done_here


OptimizerFactory = Callable[[Mapping[str, torch.nn.Parameter], Schedule], torch.optim.Optimizer]
"""Makes the optimiser of named parameters; its state of each must be tensors only."""


def _adamw(learnt: Mapping[str, torch.nn.Parameter], schedule: Schedule) -> torch.optim.Optimizer:
    return torch.optim.AdamW(
        learnt.values(), lr=schedule.rate, betas=(0.9, 0.95), weight_decay=schedule.decay
    )


class Trainer(Generic[BatchT]):
    """Trains an objective, by default with AdamW. `step` counts finished steps.

    The file `checkpoint`, once written, has the parameters, the optimiser's state and `step`.
    """

    def __init__(
        self,
        objective: TrainingObjective[BatchT],
        source: BatchSource[BatchT],
        schedule: Schedule,
        checkpoint: Path,
        clock: Callable[[], float] = time.monotonic,
        optimiser: OptimizerFactory | None = None,
    ) -> None:
        self.step = 0
        self._objective = objective
        self._source = source
        self._schedule = schedule
        self._checkpoint = checkpoint
        self._clock = clock
        self._learnt = dict(objective.module.named_parameters())
        self._optimiser = (optimiser or _adamw)(self._learnt, schedule)

    def run(
        self,
        on_step: Callable[[StepProgress], None] = lambda _progress: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Run the remaining steps. False when `stop` returned true after one of them: then there is
        a checkpoint, from which another trainer can resume.

        Raises: `InputError` when the loss is not finite, `OSError`.
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
        """Write a checkpoint. Raises: `OSError`."""
        tensors = dict(self._state())
        notes = {"step": str(self.step), "schedule": self._schedule.as_json}
        tensor_file.write(self._checkpoint, tensors, notes)

    def resume(self) -> None:
        """Continue from the checkpoint.

        Raises: `InputError` where it is missing, or of another training.
        """
        hint = f"take another folder, or remove {self._checkpoint} to begin anew without --resume"
        try:
            tensors, notes = tensor_file.read(self._checkpoint)
        except tensor_file.TensorFileError as error:
            raise InputError(f"there is no checkpoint to go on from: {error}", hint=hint) from error
        if notes.get("schedule") != self._schedule.as_json:
            difference = _differing(notes.get("schedule", ""), self._schedule)
            raise InputError(f"{self._checkpoint} is of another training{difference}", hint=hint)
        try:
            self._take(tensors)
            self.step = int(notes["step"])
        except (KeyError, ValueError, RuntimeError) as error:
            reason = str(error).partition("\n")[0]
            message = f"{self._checkpoint} fits no such training: {reason}"
            raise InputError(message, hint=hint) from error

    def _one(self) -> tuple[float, int]:
        """One step: its loss, and its number of trained tokens."""
        schedule = self._schedule
        rng = np.random.default_rng([schedule.seed, self.step])
        batch = self._source.draw(rng, schedule.texts, schedule.longest)
        for group in self._optimiser.param_groups:
            group["lr"] = schedule.rate_at(self.step)
        self._optimiser.zero_grad(set_to_none=True)
        loss = self._objective.loss(batch, rng)
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
        """The parameters by name, and the optimiser's state of each."""
        for name, parameter in self._learnt.items():
            yield f"learnt.{name}", parameter
            state: Mapping[str, torch.Tensor] = self._optimiser.state[parameter]
            for key, value in state.items():
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
            if key != "learnt":  # parameters without a gradient so far have no state
                state.setdefault(numbers[name], {})[key] = tensor
        groups = self._optimiser.state_dict()["param_groups"]
        self._optimiser.load_state_dict({"state": state, "param_groups": groups})

    def _numbers(self) -> dict[str, int]:
        """The optimiser's numbers of the parameters."""
        names = {id(parameter): name for name, parameter in self._learnt.items()}
        parameters = (p for group in self._optimiser.param_groups for p in group["params"])
        return {names[id(parameter)]: number for number, parameter in enumerate(parameters)}


def _differing(stored: str, schedule: Schedule) -> str:
    """The differences of a stored schedule from `schedule`; empty if it cannot be read."""
    try:
        was = json.loads(stored)
        now = json.loads(schedule.as_json)
        changed = [name for name in now if was[name] != now[name]]
        differences = [f"{name} {was[name]}, not {now[name]}" for name in changed]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f": {'; '.join(differences)}"


@dataclass(frozen=True, slots=True)
class TextsWritten:
    """Progress of writing texts: `done` of `total`."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class EvaluationStarted:
    """The start of the evaluation on `texts` held-out texts."""

    texts: int


TrainingNews = TextsWritten | StepProgress | EvaluationStarted
