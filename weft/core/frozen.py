"""Instances of frozen dataclasses, made as fast as those of any other class.

A frozen dataclass sets each of its fields by a call, which is most of what making it costs, and a
run makes several for every node.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


def constructor(cls: Callable[P, T]) -> Callable[P, T]:
    """Makes what `cls`, a frozen dataclass with slots, makes: the same values, frozen as well.

    They are filled as instances of a class that is not frozen and has the same slots, and become
    instances of `cls` before anybody sees them.
    """
    assert dataclasses.is_dataclass(cls)
    assert not hasattr(cls, "__post_init__"), "it would not be called"

    def freeze(made: Any) -> None:
        made.__class__ = cls

    fields = [(each.name, each.type, _default(each)) for each in dataclasses.fields(cls)]
    own = {"__post_init__": freeze, "__module__": cls.__module__}
    made = dataclasses.make_dataclass(cls.__name__, fields, namespace=own, eq=False, slots=True)
    return cast(Callable[P, T], made)


def _default(declared: dataclasses.Field[Any]) -> Any:
    given = declared.default, declared.default_factory
    return dataclasses.field(default=given[0], default_factory=given[1])  # one of them is missing
