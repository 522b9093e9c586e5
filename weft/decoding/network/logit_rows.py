"""Logits where the model computed them, read as an array; they reach the host at the first look.

On a GPU the logits of one token are hundreds of kilobytes, and a copy waits for all that the device
has to do. What a device decides by itself (`weft.decoding.device_sampling`) copies none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray


class LogitRows:
    """Rows of the logits of one pass: float32 [rows, vocabulary].

    All parts of a pass share one copy on the host, which is made when the first of them is read. On
    the CPU it is the model's own memory.
    """

    __slots__ = ("_first", "_last", "_read", "_whole")

    def __init__(
        self,
        whole: torch.Tensor | NDArray[np.float32],
        read: Callable[[], NDArray[np.float32]],
        first: int,
        last: int,
    ) -> None:
        self._whole, self._read = whole, read
        self._first, self._last = first, last

    @classmethod
    def of(cls, whole: torch.Tensor | NDArray[np.float32]) -> LogitRows:
        """All rows of a pass."""

        @cache
        def read() -> NDArray[np.float32]:
            host: NDArray[np.float32] = whole.cpu().numpy() if hasattr(whole, "cpu") else whole
            return host

        return cls(whole, read, 0, len(whole))

    def part(self, first: int, last: int | None = None) -> LogitRows:
        """The rows `first` to `last` - 1 of these, without reading them."""
        end = self._last if last is None else min(self._first + last, self._last)
        return LogitRows(self._whole, self._read, self._first + first, end)

    @property
    def scores(self) -> torch.Tensor:
        """The same on the model's device."""
        return self._whole[self._first : self._last]

    @property
    def host(self) -> NDArray[np.float32]:
        """The same on the host."""
        return self._read()[self._first : self._last]

    @property
    def vocabulary(self) -> int:
        """How many tokens a row has a logit for."""
        return int(self._whole.shape[1])

    def __len__(self) -> int:
        return self._last - self._first

    def __getitem__(self, rows: Any) -> Any:
        return self.host[rows]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        host = self.host if dtype is None else self.host.astype(dtype, copy=False)
        return host.copy() if copy else host
