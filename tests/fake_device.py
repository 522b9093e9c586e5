"""An accelerator that is none: tensors of another device type, whose arithmetic the CPU does.

What CUDA refuses is refused here too: operations on tensors of both devices, a CPU's generator, and
`numpy`. What CUDA allows is allowed: copies, CPU tensors without dimensions, and CPU indices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import torch
from torch.utils import backend_registration

NAME: Final = "weftgpu"
_ATEN: Final = torch.ops.aten
_COPIES: Final = frozenset({_ATEN.copy_, _ATEN._to_copy, _ATEN._copy_from})
_MOVES: Final = frozenset({*_COPIES, _ATEN.to})
_SCALARS: Final = frozenset({_ATEN._local_scalar_dense, _ATEN.equal, _ATEN.is_nonzero})
_INDEXING: Final = frozenset({_ATEN.index, _ATEN.index_put, _ATEN.index_put_})
# torch calls these from C++ where it has no Python operator at hand: they need a kernel by name
_BY_NAME: Final = ("_to_copy", "copy_", "empty.memory_format", "empty_strided")
_LESS_PRECISE: Final = ("linear", "matmul", "mm", "bmm", "scaled_dot_product_attention")

operations: Counter[str] = Counter()
"""By name, how often the device was asked for each."""
to_host: list[int] = []
"""The values of every copy from the device to the CPU, which on CUDA waits for the device."""
to_device: list[int] = []
"""The same from the CPU to the device."""


class OnDevice(torch.Tensor):  # type: ignore[misc]
    """A tensor on the device; the CPU has it as `raw`."""

    raw: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls: type[OnDevice], raw: torch.Tensor) -> OnDevice:
        made: OnDevice = torch.Tensor._make_wrapper_subclass(
            cls,
            raw.shape,
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=torch.device(NAME, 0),
        )
        made.raw = raw
        return made

    def __init__(self, raw: torch.Tensor) -> None:
        """See `__new__`."""

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return _perform(func, args, kwargs or {})

    def tolist(self) -> Any:
        """Torch has none for classes of others; on CUDA it is allowed."""
        operations["tolist"] += 1
        to_host.append(self.raw.numel())
        return self.raw.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError(f"can't convert {NAME}:0 device type tensor to numpy")

    def __array__(self, *_: Any) -> Any:
        return self.numpy()

    def __repr__(self) -> str:
        return f"OnDevice({self.raw!r})"


class _Module(backend_registration._DummyBackendModule):  # type: ignore[misc]
    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


@cache
def register() -> str:
    """Make the device known to torch, for the rest of the process; its name."""
    backend_registration._setup_privateuseone_for_python_backend(NAME, _Module())
    everything = torch.library.Library("_", "IMPL")
    everything.fallback(lambda op, *args, **kwargs: _perform(op, args, kwargs), "PrivateUse1")
    named = torch.library.Library("aten", "IMPL")
    for name in _BY_NAME:
        packet, _, overload = name.partition(".")
        op = getattr(getattr(_ATEN, packet), overload or "default")
        named.impl(name, _kernel(op), "PrivateUse1")
    everything.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    for name in _LESS_PRECISE:
        named.impl(name, _in_bfloat16(getattr(_ATEN, name).default), "AutocastPrivateUse1")
    _LIBRARIES.extend((everything, named))
    return NAME


_LIBRARIES: list[torch.library.Library] = []
"""What they register ends with them."""


def _in_bfloat16(op: Any) -> Callable[..., Any]:
    """As autocast does it with the products of matrices."""

    def cast(leaf: Any) -> Any:
        wide = isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32
        return leaf.to(torch.bfloat16) if wide else leaf

    def perform(*args: Any, **kwargs: Any) -> Any:
        autocast = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)
        with torch._C._ExcludeDispatchKeyGuard(autocast):
            return op(*map(cast, args), **{name: cast(each) for name, each in kwargs.items()})

    return perform


def _kernel(op: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: _perform(op, args, kwargs)


def _perform(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    operations[str(op)] += 1
    if op.overloadpacket is _ATEN._has_compatible_shallow_copy_type:
        return False  # modules then make new parameters, or swap them
    given = [*_leaves(args), *_leaves(tuple(kwargs.values()))]
    _check(op, args, given)
    _note_copies(op, args, kwargs, given)
    found = op(*_inner(args), **{name: _inner(value) for name, value in kwargs.items()})
    device = kwargs.get("device")
    if device is not None and torch.device(device).type == "cpu":
        return found
    ours = [leaf for leaf in given if isinstance(leaf, OnDevice)]
    inference = torch.is_inference_mode_enabled()
    if op.is_view and ours:  # a view counts the changes of what it is a view of
        inference = ours[0].is_inference()
    changed = {id(leaf.raw): leaf for leaf in ours}
    with torch.inference_mode(inference):
        return _outer(found, changed)


def _note_copies(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any]) -> None:
    """Add what crosses between the devices to `to_host` and `to_device`."""
    if op.overloadpacket in _SCALARS:
        to_host.append(1)
    if op.overloadpacket not in _MOVES or not isinstance(leaves[-1], torch.Tensor):
        return
    source, target = leaves[-1], leaves[0]
    there = isinstance(target, OnDevice)
    if op.overloadpacket is _ATEN._copy_from:
        there = isinstance(args[1], OnDevice)
    named = [each for each in (*args, kwargs.get("device")) if isinstance(each, torch.device)]
    if named:
        there = named[0].type == NAME
    if isinstance(source, OnDevice) and not there:
        to_host.append(source.numel())
    elif not isinstance(source, OnDevice) and there:
        to_device.append(source.numel())


def _leaves(of: tuple[Any, ...] | list[Any]) -> Iterator[Any]:
    """Of arguments of operations, which are lists and tuples of values."""
    for each in of:
        if isinstance(each, (list, tuple)):
            yield from _leaves(each)
        elif isinstance(each, (torch.Tensor, torch.Generator)):
            yield each


def _inner(each: Any) -> Any:
    if isinstance(each, OnDevice):
        return each.raw
    if isinstance(each, (list, tuple)):
        return type(each)(map(_inner, each))
    if isinstance(each, torch.device) and each.type == NAME:
        return torch.device("cpu")
    return each


def _outer(each: Any, changed: dict[int, OnDevice]) -> Any:
    """What is changed in place stays the tensor that it was."""
    if isinstance(each, (list, tuple)):
        return type(each)([_outer(one, changed) for one in each])
    if not isinstance(each, torch.Tensor):
        return each
    return changed[id(each)] if id(each) in changed else OnDevice(each)


def _check(op: Any, args: tuple[Any, ...], leaves: list[Any]) -> None:
    """Raises: `RuntimeError` as CUDA does."""
    for leaf in leaves:
        if isinstance(leaf, torch.Generator) and leaf.device.type != NAME:
            raise RuntimeError(f"Expected a {NAME!r} device type for generator but found 'cpu'")
    if op.overloadpacket in _COPIES:
        return
    if op.overloadpacket in _INDEXING:
        of, _, *rest = args
        leaves = [of, *rest[:1]]
        if not isinstance(of, OnDevice):
            raise RuntimeError("indices should be either on cpu or on the same device")
    if strange := [leaf for leaf in leaves if _is_on_cpu(leaf)]:
        shapes = [list(tensor.shape) for tensor in strange]
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices,"
            f" {NAME}:0 and cpu, in {op}: of the CPU are {shapes}"
        )


def _is_on_cpu(leaf: Any) -> bool:
    """Whether it is a tensor that an operation on the device may not have."""
    if not isinstance(leaf, torch.Tensor) or isinstance(leaf, OnDevice):
        return False
    return bool(leaf.ndim)
