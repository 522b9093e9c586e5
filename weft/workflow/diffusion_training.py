"""Training of diffusion models, for the command line: see `weft.training.diffusion`."""

from __future__ import annotations

from dataclasses import replace

from weft.core.extras import optional_packages
from weft.serving.weights import locate
from weft.workflow.drafters import model_folder

with optional_packages("training"):
    from weft.training.diffusion.spec import (
        KINDS,
        DiffusionTrainerSpec,
        DiffusionTrainingJob,
        DiffusionTrainingResult,
        TrainingListener,
        kind_of,
    )

__all__ = [
    "DiffusionTrainerSpec",
    "DiffusionTrainingJob",
    "DiffusionTrainingResult",
    "TrainingListener",
    "all_kinds",
    "model_folder",
    "train",
]


def all_kinds() -> list[DiffusionTrainerSpec]:
    """What can be trained, by name."""
    return [kind_of(name) for name in sorted(KINDS)]


def train(
    order: DiffusionTrainingJob, *, resume: bool, hearing: TrainingListener
) -> DiffusionTrainingResult | None:
    """None when `hearing.stop` said so: what there is by then is kept for `resume`.

    Raises: `InputError`, `CapabilityError` for a model it is not for, `OSError`.
    """
    return kind_of(order.kind).train(replace(order, find=locate), resume, hearing)
