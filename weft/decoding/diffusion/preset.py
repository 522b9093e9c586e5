"""A way to write as people name it: what makes its plugs, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.plugs import Plugs

Options = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class DiffusionPreset:
    """`make` builds the plugs for a model.

    It raises `SpecError` for options that cannot be, `CapabilityError` or `ModelNotFound` for a
    model that it cannot be used with.

    plain      one token a pass: what the others are measured against
    needs      what it takes beside the model: a trained filter, a supervisor; empty: nothing
    options    the names it takes
    lists      those of them that take several values, with commas between them
    published  what was claimed, and where; empty: nobody measured it
    """

    name: str
    summary: str
    make: Callable[[Traits, Options], Plugs]
    plain: bool = False
    needs: str = ""
    options: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    published: str = ""
