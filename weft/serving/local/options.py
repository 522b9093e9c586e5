"""How a local model is run. Knows nothing of torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """Settings of one local model.

    dtype: `auto` is bfloat16 where the machine computes in it, else float32.
    threads: None leaves one core to the rest of the program (see `cores`).
    max_batch: requests decoded together; the others queue by priority, then in order of arrival.
    max_context_tokens: prompt and answer together; at most what the model was trained for, which
    is what None stands for.
    default_max_tokens: answer length where a request does not say.
    prefill_tokens: prompt tokens read per step, so that a long prompt does not hold up the answers
    that are being written.
    cache_tokens: rows of the batch times the longest of them may not exceed this; a single request
    always fits.
    group_wait_s: how long a worker of concurrent attention waits for the others of its group.
    max_string_chars, max_items: bounds put on strings and arrays of a schema that has none, so that
    a small model cannot write one for ever. None puts none.

    Raises: `ValueError` for sizes below one and times that are not above zero.
    """

    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    device: str = "cpu"
    threads: int | None = None
    max_batch: int = 16
    max_context_tokens: int | None = None
    default_max_tokens: int = 512
    prefill_tokens: int = 256
    cache_tokens: int = 65_536
    max_string_chars: int | None = None
    max_items: int | None = None
    group_wait_s: float = 30.0

    def __post_init__(self) -> None:
        sizes = {
            "threads": self.threads,
            "max_batch": self.max_batch,
            "max_context_tokens": self.max_context_tokens,
            "default_max_tokens": self.default_max_tokens,
            "prefill_tokens": self.prefill_tokens,
            "cache_tokens": self.cache_tokens,
            "max_string_chars": self.max_string_chars,
            "max_items": self.max_items,
        }
        for name, size in sizes.items():
            if size is not None and size < 1:
                raise ValueError(f"{name} must be at least 1, not {size}")
        if not self.group_wait_s > 0:
            raise ValueError(f"group_wait_s must be above 0, not {self.group_wait_s}")
