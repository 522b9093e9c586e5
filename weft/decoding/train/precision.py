"""In what a lesson is computed. Weights and what is learnt stay in float32."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch


def computes_bfloat16(device: torch.device) -> bool:
    """Whether the machine does: then it is about twice as fast, on a CPU, too."""
    if device.type != "cpu":
        return True
    can = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(can.get("avx512_bf16") or can.get("amx_bf16"))


def sparing(device: torch.device) -> AbstractContextManager[object]:
    """Products in bfloat16 where the machine computes in it."""
    fast = computes_bfloat16(device)
    return torch.autocast(device.type, torch.bfloat16, enabled=fast)  # type: ignore[no-any-return]
