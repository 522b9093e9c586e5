"""Frozen dataclasses that are made quickly are the same as those that are made slowly."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from weft.core.events import NodeFinished, Outcome
from weft.core.ids import NodeId
from weft.core.values import constructor


@dataclass(frozen=True, slots=True)
class Point:
    """A value."""

    x: int
    y: int = 2
    names: list[str] = field(default_factory=list)


point = constructor(Point)


def test_what_it_makes_is_equal_and_of_the_same_class() -> None:
    made, slow = point(1, names=["a"]), Point(1, names=["a"])
    assert type(made) is Point
    assert (made, repr(made)) == (slow, repr(slow))
    assert replace(made, x=3) == Point(3, names=["a"])
    assert hash(constructor(Outcome)("failed")) == hash(Outcome("failed"))


def test_what_it_makes_cannot_be_changed() -> None:
    made = constructor(NodeFinished)(NodeId("a"), Outcome("succeeded"), 1.0)
    with pytest.raises(FrozenInstanceError):
        made.at_s = 2.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del made.node


def test_each_has_defaults_of_its_own() -> None:
    first, second = point(1), point(1)
    first.names.append("a")
    assert second.names == []


def test_arguments_are_checked_as_ever() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        point()  # type: ignore[call-arg]


def test_a_class_that_checks_its_values_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Checked:
        x: int

        def __post_init__(self) -> None:
            raise ValueError

    with pytest.raises(AssertionError):
        constructor(Checked)
