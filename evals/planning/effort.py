"""How much to measure, and how a section says that it cannot. Measures nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Effort:
    """`quick`: all sections together within ten minutes on two cores."""

    quick: bool = False

    def of(self, quick: T, full: T) -> T:
        """The one of the two that this effort asks for."""
        return quick if self.quick else full


class Skipped(Exception):
    """Something needed is not here; the message says what, in words."""


QUICK = Effort(quick=True)
FULL = Effort()
