"""Training of drafters, for the command line: see `weft.decoding.speculative.train`."""

from __future__ import annotations

from pathlib import Path

from weft.core.extras import optional_packages
from weft.serving.weights import locate

with optional_packages("training"):
    from weft.decoding.speculative.train.distil import Writing
    from weft.decoding.speculative.train.kind import Kind
    from weft.decoding.speculative.train.kinds import KINDS, kind_of
    from weft.decoding.speculative.train.session import STARTER, Order, Trained, train
    from weft.decoding.train.frame import Progress
    from weft.decoding.train.news import Measures, News, Writes

__all__ = [
    "STARTER",
    "Kind",
    "Measures",
    "News",
    "Order",
    "Progress",
    "Trained",
    "Writes",
    "Writing",
    "all_kinds",
    "kind_of",
    "model_folder",
    "train",
]


def all_kinds() -> list[Kind]:
    """What can be trained, by name."""
    return [kind_of(name) for name in sorted(KINDS)]


def model_folder(name: str) -> Path:
    """The folder of a model: what `weft model pull` fetched under that name, or a path.

    Raises: `ModelNotFound`.
    """
    return locate(name.removeprefix("local:"))
