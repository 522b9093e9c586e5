"""Decoders and their options as text (`NAME,option=value`), and the names of plain decoding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from weft.core.errors import SpecError
from weft.core.values import DecodeSpec, Lossless

Option = str | int | float | bool


def read_pairs(
    decoder: str,
    known: Sequence[str],
    pairs: Iterable[str],
    kinds: Mapping[str, Callable[[str], Option]],
) -> dict[str, Option]:
    """The options of `decoder`, of the `known` names; `kinds` parse those with a type of their own.

    Raises: `SpecError` for a pair without a value or an unknown name; what `kinds` raise.
    """
    options: dict[str, Option] = {}
    for pair in pairs:
        key, equals, word = (part.strip() for part in pair.partition("="))
        if not equals or not word:
            raise SpecError(f"the decoder's option {pair!r} has no value", hint="write name=value")
        if key not in known:
            listed = ", ".join(known) or "none"
            raise SpecError(f"{decoder!r} has no option {key!r}", hint=f"it has: {listed}")
        options[key] = kinds.get(key, read_value)(word)
    return options


def read_value(word: str) -> Option:
    """A truth value, a number, or a text."""
    if word in ("true", "false"):
        return word == "true"
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def value_text(value: Option) -> str:
    """`value` as text, which `read_value` parses."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def format_decoder(spec: DecodeSpec) -> str:
    """`spec` as text, which the decoder parsers accept."""
    pairs = (f"{name}={value_text(value)}" for name, value in spec.options)
    return ",".join((spec.method, *pairs))


PLAIN: Final = Lossless("none")
"""Plain decoding on request; a request without a decoder gets the model's default."""
PLAIN_NAMES: Final = ("autoregressive", PLAIN.method)
