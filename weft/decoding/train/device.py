"""What a training may compute on."""

from __future__ import annotations

import re
from typing import Final

import torch

from weft.core.errors import InputError

_DEVICE: Final = re.compile(r"cpu|cuda(:\d{1,3})?")


def check_device(name: str) -> None:
    """Raises: `InputError` for one that this torch does not have, or nobody trains on."""
    if not _DEVICE.fullmatch(name):
        raise InputError(f"nothing can be trained on {name!r}", hint="take cpu, or cuda")
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        message = f"this torch cannot compute on {name!r}: {reason}"
        raise InputError(message, hint="take cpu") from error
