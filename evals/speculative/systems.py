"""What is measured: every decoder there is for a model in this process, by its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final

from weft.core.errors import WeftError
from weft.core.values import DecodeSpec, Lossless, Lossy
from weft.decoding.network.network import Network
from weft.decoding.speculative.drafter import SpeculativeMethod
from weft.decoding.speculative.presets import NAMES, made, preset

_ELSEWHERE: Final = ("auto",)
"""`auto` learns from what it has seen, so it has a run of its own: the section `auto`."""
_ALONE: Final[Mapping[str, tuple[tuple[str, bool], ...]]] = {
    "suffix": (("shared", False),),
    "hybrid": (("shared", False),),
}
"""Without the texts of other requests: among them would be the same prompt's own answer."""


@dataclass(frozen=True, slots=True)
class System:
    """A decoder as requests ask for it; `missing` says why it cannot be asked for here."""

    name: str
    spec: DecodeSpec
    missing: str = ""

    @property
    def lossless(self) -> bool:
        """Whether its text is that of plain decoding."""
        return isinstance(self.spec, Lossless)


def systems() -> Iterator[System]:
    """Every preset, in their order."""
    for name in NAMES:
        if name not in _ELSEWHERE:
            try:
                kind = Lossless if preset(name).lossless else Lossy
            except ImportError as error:
                yield System(name, Lossless(name), f"{error}")
            else:
                yield System(name, kind(name, _ALONE.get(name, ())))


class Methods:
    """The methods of `wanted` over one network; those that cannot be made are `missing`."""

    def __init__(self, network: Network, wanted: Iterable[System]) -> None:
        self.made: dict[str, SpeculativeMethod] = {}
        self.missing: dict[str, str] = {}
        for system in wanted:
            try:
                if system.missing:
                    self.missing[system.name] = system.missing
                else:
                    options = dict(system.spec.options)
                    self.made[system.name] = made(system.name, network, options)
            except WeftError as error:
                self.missing[system.name] = error.message

    def __enter__(self) -> Methods:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for method in self.made.values():
            method.close()
