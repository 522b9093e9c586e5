"""Training of drafters, for the command line: see `weft.training.drafters`."""

from __future__ import annotations

from pathlib import Path

from weft.core.extras import optional_packages
from weft.serving.weights import locate

with optional_packages("training"):
    from weft.training.distillation import DistillationOptions
    from weft.training.drafters.session import (
        STARTER,
        DrafterTrainingJob,
        DrafterTrainingResult,
        train,
    )
    from weft.training.drafters.spec import KINDS, DrafterSpec, kind_of
    from weft.training.frame import EvaluationStarted, StepProgress, TextsWritten, TrainingNews

__all__ = [
    "STARTER",
    "DistillationOptions",
    "DrafterSpec",
    "DrafterTrainingJob",
    "DrafterTrainingResult",
    "EvaluationStarted",
    "StepProgress",
    "TextsWritten",
    "TrainingNews",
    "all_kinds",
    "kind_of",
    "model_folder",
    "train",
]


def all_kinds() -> list[DrafterSpec]:
    """What can be trained, by name."""
    return [kind_of(name) for name in sorted(KINDS)]


def model_folder(name: str) -> Path:
    """The folder of a model: what `weft model pull` fetched under that name, or a path.

    Raises: `ModelNotFound`.
    """
    return locate(name.removeprefix("local:"))
