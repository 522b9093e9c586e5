"""Devices and precision of trainings."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from typing import Final

import torch

from weft.core.errors import InputError

_DEVICE: Final = re.compile(r"cpu|cuda(:\d{1,3})?")


def check_device(name: str) -> None:
    """Raises: `InputError` for a device that this torch does not have or cannot train on."""
    if not _DEVICE.fullmatch(name):
        raise InputError(f"nothing can be trained on {name!r}", hint="take cpu, or cuda")
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        message = f"this torch cannot compute on {name!r}: {reason}"
        raise InputError(message, hint="take cpu") from error


def computes_bfloat16(device: torch.device) -> bool:
    """Whether the device computes in bfloat16, which is about twice as fast, even on a CPU."""
    if device.type != "cpu":
        return True
    can = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(can.get("avx512_bf16") or can.get("amx_bf16"))


def mixed_precision(device: torch.device) -> AbstractContextManager[object]:
    """Autocast to bfloat16 where the device computes in it."""
    fast = computes_bfloat16(device)
    return torch.autocast(device.type, torch.bfloat16, enabled=fast)  # type: ignore[no-any-return]
