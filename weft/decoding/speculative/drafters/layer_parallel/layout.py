"""How a draft model is laid over ranks: which attention runs where, and which run together.

Knows no weights.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from weft.decoding.network.options import NetworkOptions


@dataclass(frozen=True, slots=True)
class Layout:
    """A draft model over `ranks`, each with `threads` of its own.

    path        the model's folder; its first `layers` layers are used, None for all
    group       so many neighbouring layers attend to the same input when drafting; the first and
                the last layer stand alone, for they matter most. 1: all do, drafts are exact
    device      "cpu", or "cuda" for a device to each rank
    vocabulary  how many tokens the target knows, which the draft model has to know too; None: any

    Raises: `ValueError` for sizes below one.
    """

    path: Path
    ranks: int = 2
    group: int = 3
    layers: int | None = None
    threads: int = 1
    device: str = "cpu"
    dtype: str = "auto"
    vocabulary: int | None = None

    def __post_init__(self) -> None:
        for name in ("ranks", "group", "layers", "threads"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise ValueError(f"{name} must be at least 1, not {size}")

    def groups(self, layers: int) -> tuple[range, ...]:
        """The layers of a model of `layers`, in order, as they attend when drafting."""
        last = layers - 1
        inner = [range(a, min(a + self.group, last)) for a in range(1, last, self.group)]
        return (range(1), *inner, *([range(last, layers)] if last else []))

    def options(self, rank: int) -> NetworkOptions:
        """How that rank computes."""
        device = self.device if self.device == "cpu" else f"{self.device}:{rank}"
        return NetworkOptions(dtype=self.dtype, device=device, threads=self.threads)  # type: ignore[arg-type]

    def to_json(self) -> dict[str, Any]:
        """For another process."""
        return {**asdict(self), "path": str(self.path)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Layout:
        """What `to_json` made."""
        return cls(**{**data, "path": Path(data["path"])})


def slice_of(total: int, rank: int, ranks: int) -> slice:
    """The part of `total` rows that belongs to a rank."""
    return slice(total * rank // ranks, total * (rank + 1) // ranks)
