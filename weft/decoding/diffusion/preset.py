"""A named decoder of diffusion models: its options with their bounds, and its factory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from weft.core.errors import SpecError

if TYPE_CHECKING:
    from weft.decoding.diffusion.adapter import ModelTraits
    from weft.decoding.diffusion.ports import DecoderConfig


Options = Mapping[str, str | int | float | bool]
WordT = TypeVar("WordT", bound=str)


class DecoderOption(Protocol):
    """Reads one option. Raises: `SpecError` for an invalid value."""

    @property
    def name(self) -> str:
        """Its name in a decoder string."""

    def __call__(self, options: Options) -> object:
        """Its value, or its default."""


@dataclass(frozen=True, slots=True)
class NumberOption:
    """A number from `low` to `high`."""

    name: str
    default: float
    low: float = 0.0
    high: float = 1.0

    def __call__(self, options: Options) -> float:
        value = options.get(self.name, self.default)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not self.low <= float(value) <= self.high:
            bounds = f"from {self.low:g} to {self.high:g}"
            raise SpecError(f"{self.name} must be a number {bounds}, not {value!r}")
        return float(value)


@dataclass(frozen=True, slots=True)
class WholeOption:
    """A whole number from `low` to `high`."""

    name: str
    default: int
    low: int = 0
    high: int = 4096

    def __call__(self, options: Options) -> int:
        value = options.get(self.name, self.default)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not self.low <= int(value) <= self.high:
            bounds = f"from {self.low} to {self.high}"
            raise SpecError(f"{self.name} must be a whole number {bounds}, not {value!r}")
        return int(value)


@dataclass(frozen=True, slots=True)
class WordOption(Generic[WordT]):
    """One of `words`; the first of them is the default."""

    name: str
    words: tuple[WordT, ...]

    def __call__(self, options: Options) -> WordT:
        value = options.get(self.name, self.words[0])
        for word in self.words:
            if word == value:
                return word
        raise SpecError(f"{self.name} must be one of {', '.join(self.words)}, not {value!r}")


@dataclass(frozen=True, slots=True)
class TextOption:
    """A text, such as a folder; empty where it is not given. `several`: with commas in it."""

    name: str
    several: bool = False

    def __call__(self, options: Options) -> str:
        value = options.get(self.name, "")
        if not isinstance(value, str) and not self.several:
            raise SpecError(f"{self.name} must be a text, not {value!r}")
        return str(value)


@dataclass(frozen=True, slots=True)
class DiffusionPreset:
    """A named decoder. `make` builds its configuration for a model.

    It raises `SpecError` for invalid options, `CapabilityError` or `ModelNotFound` for a model that
    it cannot be used with.

    plain      one token a pass: the baseline of the others
    needs      what it requires besides the model: a trained filter, a supervisor; empty: nothing
    options    names of its options
    lists      those options that take several values, separated by commas
    published  the published result and its source; empty: there is none
    """

    name: str
    summary: str
    make: Callable[[ModelTraits, Options], DecoderConfig]
    plain: bool = False
    needs: str = ""
    options: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    published: str = ""
