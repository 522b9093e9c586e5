"""How much a template may compute. Guards against text that grows or loops without end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any

MAX_TEXT = 4_000_000
"""Characters that one text may have."""
MAX_STEPS = 200_000
"""Iterations of all `{% for %}` of one rendering together."""
MAX_RANGE = 10_000
_MAX_BITS = 4096

steps_left: ContextVar[list[int]] = ContextVar("steps_left")
"""One mutable count for each rendering; set by whoever renders."""


class OutOfBounds(ValueError):
    """A template computes more than it may."""


def counted(items: Iterable[Any]) -> Iterator[Any]:
    """`items`, until the rendering's loops have made `MAX_STEPS` steps."""
    left = steps_left.get()
    for item in items:
        left[0] -= 1
        if left[0] < 0:
            raise OutOfBounds(f"the loops make more than {MAX_STEPS:,} steps")
        yield item


def check_length(length: int) -> None:
    """Raise `OutOfBounds` when a text or list of `length` is too long."""
    if length > MAX_TEXT:
        raise OutOfBounds(f"a value grows beyond {MAX_TEXT:,} characters or items")


def multiply(left: Any, right: Any) -> Any:
    """`left * right`, unless the result is huge."""
    for text, count in ((left, right), (right, left)):
        if isinstance(text, (str, bytes, list, tuple)) and isinstance(count, int):
            check_length(len(text) * max(count, 0))
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() + right.bit_length())
    return left * right


def power(left: Any, right: Any) -> Any:
    """`left ** right`, unless the result is huge."""
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() * max(right, 0))
    return left**right


def remainder(left: Any, right: Any) -> Any:
    """`left % right` of numbers; formatting texts this way is refused."""
    if isinstance(left, (str, bytes)):
        raise OutOfBounds("`%` is for numbers here; join texts with `~`")
    return left % right


def whole_range(*arguments: int) -> range:
    """Like `range`, for at most `MAX_RANGE` numbers."""
    numbers = range(*arguments)
    if len(numbers) > MAX_RANGE:
        raise OutOfBounds(f"a range has at most {MAX_RANGE:,} numbers")
    return numbers


def _check_bits(bits: int) -> None:
    if bits > _MAX_BITS:
        raise OutOfBounds(f"a number has more than {_MAX_BITS:,} bits")
