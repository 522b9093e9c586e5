"""A kind of drafter that can be trained, as each of their modules describes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch

from weft.core.errors import InputError
from weft.decoding.speculative.train.corpus import Batch, Corpus
from weft.decoding.speculative.train.teacher import Teacher
from weft.decoding.train.frame import Lesson, Schedule


@dataclass(frozen=True, slots=True)
class Made:
    """A trained drafter: `settings` are JSON values for its config, `tensors` its weights."""

    settings: Mapping[str, object]
    tensors: Mapping[str, torch.Tensor]


class Course(Lesson[Batch], Protocol):
    """The training of one drafter."""

    def made(self, held_out: Corpus) -> Made:
        """The drafter as it is now, with what was measured on texts that it did not learn from."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`settings` are what may be set, whole numbers, with their defaults. `schedule` suits them.

    `begin` is given the target, the texts to learn from, the settings and a seed.
    """

    name: str
    summary: str
    schedule: Schedule
    settings: Mapping[str, int]
    begin: Callable[[Teacher, Corpus, Mapping[str, int], int], Course]

    def set_to(self, given: Mapping[str, int]) -> dict[str, int]:
        """All settings, with those `given`. Raises: `InputError` for others, or below 1."""
        for name, value in given.items():
            if name not in self.settings:
                there = ", ".join(sorted(self.settings)) or "none"
                raise InputError(f"{self.name} has no setting {name!r}", hint=f"there is {there}")
            if value < 1:
                raise InputError(f"{name} must be a whole number from 1, not {value!r}")
        return {**self.settings, **given}
