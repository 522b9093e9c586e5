"""How a network is computed. Knows nothing of torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """dtype: `auto` is bfloat16 where the machine computes in it, else float32.
    threads: None leaves one core to the rest of the program (see `cores`).
    max_context_tokens: prompt and answer together; at most what the model was trained for, which
    is what None stands for.

    Raises: `ValueError` for sizes below one.
    """

    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    device: str = "cpu"
    threads: int | None = None
    max_context_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("threads", "max_context_tokens"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise ValueError(f"{name} must be at least 1, not {size}")
