"""Kinds of drafters that can be trained, by name."""

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
    """The objective of one drafter."""

    def made(self, held_out: Corpus) -> TrainedWeights:
        """The trained weights, with results on held-out texts."""


@dataclass(frozen=True, slots=True)
class DrafterSpec:
    """A kind of drafter. `settings` are whole numbers with their defaults; `schedule` suits them.

    `begin` receives the target, the texts, the settings and a seed.
    """

    name: str
    summary: str
    schedule: Schedule
    settings: Mapping[str, int]
    begin: Callable[[Teacher, Corpus, Mapping[str, int], int], DrafterObjective]

    def set_to(self, changes: Mapping[str, int]) -> dict[str, int]:
        """All settings after `changes`. Raises: `InputError` for unknown ones, or below 1."""
        for name, value in changes.items():
            if name not in self.settings:
                there = ", ".join(sorted(self.settings)) or "none"
                raise InputError(f"{self.name} has no setting {name!r}", hint=f"there is {there}")
            if value < 1:
                raise InputError(f"{name} must be a whole number from 1, not {value!r}")
        return {**self.settings, **changes}


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
"""By name: the module with its `KIND`."""


def all_kinds() -> list[DrafterSpec]:
    """All kinds, sorted by name."""
    return [kind_of(name) for name in sorted(KINDS)]


def kind_of(name: str) -> DrafterSpec:
    """The kind of that name. Raises: `InputError`, which lists the names."""
    if name not in KINDS:
        there = ", ".join(sorted(KINDS))
        raise InputError(f"no drafter {name!r} can be trained", hint=f"one of {there}")
    kind: DrafterSpec = import_module(_HERE + KINDS[name]).KIND
    return kind
