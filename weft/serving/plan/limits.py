"""The engine's knobs that a plan fixes, so that what is planned is what is started."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.errors import SpecError
from weft.serving.plan.hardware import Device

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Limits:
    """What one engine may hold and do at once.

    max_seqs               most sequences in one forward pass
    max_batched_tokens     most tokens in one forward pass: long prompts are cut into chunks of it
    block_tokens           tokens of one block of the KV cache
    memory_share           part of a device's memory that the engine takes: vLLM's default
                           `gpu_memory_utilization` (0.92 in vLLM 0.32)
    """

    max_seqs: int = 256
    max_batched_tokens: int = 8_192
    block_tokens: int = 16
    memory_share: float = 0.92

    def __post_init__(self) -> None:
        for name in ("max_seqs", "max_batched_tokens", "block_tokens"):
            if getattr(self, name) < 1:
                raise SpecError(f"`{name}` is {getattr(self, name)}", hint="it counts from 1")
        if self.max_batched_tokens < self.max_seqs:
            raise SpecError(
                f"{self.max_seqs} sequences do not fit {self.max_batched_tokens} tokens a pass",
                hint="every sequence needs one token of the pass",
            )
        if not 0.0 < self.memory_share <= 1.0:
            raise SpecError(f"`memory_share` is {self.memory_share}, not a part of 1")


def default_limits(device: Device) -> Limits:
    """What vLLM 0.32 serves with on a device of this size when nothing is said."""
    if device.memory_bytes >= 160 * _GIB:
        return Limits(max_seqs=1_024, max_batched_tokens=16_384)
    if device.memory_bytes >= 70 * _GIB and not device.name.startswith("a100"):
        return Limits(max_seqs=1_024, max_batched_tokens=8_192)
    return Limits(max_seqs=256, max_batched_tokens=2_048)
