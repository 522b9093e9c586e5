"""Decoders and their options as people write them (`NAME,option=value`), and plain decoding by
name.
"""

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
    """The options of `decoder` among those `known`; `kinds` reads those that are not any value.

    Raises: `SpecError` for a pair without a value and a name that is none, and what `kinds` do.
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
    """A truth value, a number, or the text as it is."""
    if word in ("true", "false"):
        return word == "true"
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def value_text(value: Option) -> str:
    """`value` as `read_value` reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def format_decoder(spec: DecodeSpec) -> str:
    """`spec` as those who parse decoders read it."""
    pairs = (f"{name}={value_text(value)}" for name, value in spec.options)
    return ",".join((spec.method, *pairs))


PLAIN: Final = Lossless("none")
"""For who asks for it, where a request that says nothing gets the model's own decoder."""
PLAIN_NAMES: Final = ("autoregressive", PLAIN.method)
