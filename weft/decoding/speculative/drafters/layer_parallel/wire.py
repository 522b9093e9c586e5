"""What ranks tell one another: tensors of the same shape, which all get in the order of the ranks.

Adding in that order gives every rank the same sums, bit for bit, as one process that is all ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch.distributed import ProcessGroup


class Wire(Protocol):
    """Connects the ranks that live here with the others."""

    def gather(self, parts: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """`parts` of the ranks that live here; those of all ranks."""

    def close(self) -> None:
        """Hang up: ranks that wait for the ones here find out. Harmless when repeated."""


class NoWire:
    """Implements `Wire` where all ranks live here."""

    def gather(self, parts: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return list(parts)

    def close(self) -> None:
        """There is nobody to hang up on."""


class GroupWire:
    """Implements `Wire` for one rank of a process group.

    `gather` raises `RuntimeError` when another rank is gone or too slow, or after `close`.
    """

    def __init__(self, group: ProcessGroup) -> None:
        self._group: ProcessGroup | None = group

    def gather(self, parts: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        if self._group is None:
            raise RuntimeError("the group is closed")
        (part,) = parts
        found = [torch.empty_like(part) for _ in range(self._group.size())]
        self._group.allgather([found], [part.contiguous()]).wait()
        return found

    def close(self) -> None:
        self._group = None  # its connections go with it
