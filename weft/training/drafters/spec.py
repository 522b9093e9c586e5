"""A kind of drafter that can be trained, as each of their modules describes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Final, Protocol

import torch

from weft.core.errors import InputError
from weft.training.corpus import Corpus, TokenBatch
from weft.training.frame import Schedule, TrainingObjective
from weft.training.teacher import Teacher


@dataclass(frozen=True, slots=True)
class TrainedWeights:
    """A trained drafter: `settings` are JSON values for its config, `tensors` its weights."""

    settings: Mapping[str, object]
    tensors: Mapping[str, torch.Tensor]


class DrafterObjective(TrainingObjective[TokenBatch], Protocol):
    """The training of one drafter."""

    def made(self, held_out: Corpus) -> TrainedWeights:
        """The drafter as it is now, with what was measured on texts that it did not learn from."""


@dataclass(frozen=True, slots=True)
class DrafterSpec:
    """`settings` are what may be set, whole numbers, with their defaults. `schedule` suits them.

    `begin` is given the target, the texts to learn from, the settings and a seed.
    """

    name: str
    summary: str
    schedule: Schedule
    settings: Mapping[str, int]
    begin: Callable[[Teacher, Corpus, Mapping[str, int], int], DrafterObjective]

    def set_to(self, given: Mapping[str, int]) -> dict[str, int]:
        """All settings, with those `given`. Raises: `InputError` for others, or below 1."""
        for name, value in given.items():
            if name not in self.settings:
                there = ", ".join(sorted(self.settings)) or "none"
                raise InputError(f"{self.name} has no setting {name!r}", hint=f"there is {there}")
            if value < 1:
                raise InputError(f"{name} must be a whole number from 1, not {value!r}")
        return {**self.settings, **given}


_HERE: Final = "weft.training.drafters."
KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "dflash": "dflash",
        "eagle": "eagle",
        "hidden_transfer": "hidden_transfer",
        "lexical_units": "lexical_units",
        "medusa": "medusa",
        "pass": "pass_",
        "ppd": "ppd",
    }
)
"""By name: the module."""


def all_kinds() -> list[DrafterSpec]:
    """All of them, by name."""
    return [kind_of(name) for name in sorted(KINDS)]


def kind_of(name: str) -> DrafterSpec:
    """The kind of that name. Raises: `InputError` with those there are."""
    if name not in KINDS:
        there = ", ".join(sorted(KINDS))
        raise InputError(f"no drafter {name!r} can be trained", hint=f"one of {there}")
    kind: DrafterSpec = import_module(_HERE + KINDS[name]).KIND
    return kind
