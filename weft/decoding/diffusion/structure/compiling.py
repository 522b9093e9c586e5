"""The port of what reads single kinds of schemas to what reads all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from weft.decoding.diffusion.structure.parts import Choice, Parts


class Compiling(Protocol):
    """One schema being read. All raise `NotASkeleton`."""

    def value(self, schema: object) -> Parts:
        """A value that fits `schema`."""

    def choice(
        self,
        key: tuple[object, ...],
        make: Callable[[], Sequence[Parts]],
        *,
        exits: bool = False,
    ) -> Choice:
        """The choice of that key, made once."""

    def narrow(self, note: str) -> None:
        """Something that fits the schema is never written."""

    def key(self, schema: object) -> str:
        """Equal for equal schemas."""
