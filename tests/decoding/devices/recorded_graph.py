"""What a CUDA graph does, without CUDA: operations are recorded, and done again on the same memory.

Whatever a pass reads from Python (a length, a position, a new tensor) is as it was when it was
recorded. What CUDA refuses while it records is refused here: to look at a value on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_ATEN = torch.ops.aten
_REFUSED = frozenset(
    {_ATEN._local_scalar_dense, _ATEN.equal, _ATEN.is_nonzero, _ATEN.nonzero, _ATEN.lift_fresh}
)


class Recording(TorchDispatchMode):  # type: ignore[misc]
    """Does operations, and keeps them with their tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func.overloadpacket in _REFUSED:
            raise RuntimeError(f"operation not permitted when stream is capturing: {func}")
        found = func(*args, **(kwargs or {}))
        self.done.append((func, args, kwargs or {}, found))
        return found

    def replay(self) -> None:
        """All of it again, each result where it was."""
        for func, args, kwargs, found in self.done:
            again = func(*args, **kwargs)
            for before, now in zip(_tensors(found), _tensors(again), strict=True):
                if not _same_memory(before, now):
                    before.copy_(now)


def capture(run: Callable[[], None]) -> Callable[[], None]:
    """A `weft.decoding.network.pass_graphs.Capture`. The results of recording are wiped out."""
    run()
    recording = Recording()
    with recording:
        run()
    for _, args, _, found in recording.done:  # CUDA computes nothing while it records
        for made in _tensors(found):
            is_new = not any(_same_memory(made, given) for given in _tensors(args))
            if is_new and made.is_floating_point():
                made.fill_(float("nan"))
    return recording.replay


def _tensors(of: Any) -> Iterator[torch.Tensor]:
    if isinstance(of, torch.Tensor):
        yield of
    elif isinstance(of, (list, tuple)):
        for each in of:
            yield from _tensors(each)


def _same_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one is other:
        return True
    if one.layout != torch.strided or other.layout != torch.strided:
        return False  # a weight that is laid out for the CPU
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
