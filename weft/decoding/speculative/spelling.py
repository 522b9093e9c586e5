"""Decoders as people write them: `lookup:8`, `medusa:FOLDER`, `suffix,factor=2`. Makes none."""

from __future__ import annotations

from typing import Final

from weft.core.errors import SpecError
from weft.core.values import DecodeSpec, Lossless, Lossy
from weft.decoding.option_text import Option, read_pairs
from weft.decoding.plain import PLAIN, PLAIN_NAMES
from weft.decoding.speculative.preset import Preset
from weft.decoding.speculative.presets import preset

TOKENS: Final = "num_speculative_tokens"
MODEL: Final = "model"


def parse_decode(text: str) -> DecodeSpec:
    """The decoder that `text` names: `NAME[:MODEL][:TOKENS][,option=value]...`.

    One that may change the text has a name of its own, and comes as `Lossy`.

    Raises: `SpecError` for a name or an option that no decoder of a model in this process has.
    """
    head, *pairs = text.strip().split(",")
    name, *words = head.split(":")
    if name in PLAIN_NAMES:
        if words or pairs:
            raise SpecError(f"the decoder {name!r} takes no options")
        return PLAIN
    chosen = preset(name)
    kinds = {TOKENS: lambda word: _tokens(chosen, word)}
    read = read_pairs(name, chosen.options, pairs, kinds)
    options = {**_words(chosen, words), **read}
    kind = Lossless if chosen.lossless else Lossy
    return kind(name, tuple(options.items()))


def _words(chosen: Preset, words: list[str]) -> dict[str, Option]:
    """What stands between colons: a model, where the decoder has one, and a number of tokens."""
    options: dict[str, Option] = {}
    left = list(words)
    if left and MODEL in chosen.options and not left[0].isdigit():
        options[MODEL] = left.pop(0)
    if left and TOKENS in chosen.options:
        options[TOKENS] = _tokens(chosen, left.pop(0))
    if left:
        raise SpecError(
            f"the decoder {chosen.name!r} has no use for {left[0]!r}", hint=_form(chosen)
        )
    return options


def _tokens(chosen: Preset, word: str) -> int:
    if not word.isdecimal() or not int(word):
        raise SpecError(f"{word!r} is no number of tokens", hint=_form(chosen))
    return int(word)


def _form(chosen: Preset) -> str:
    model = "[:MODEL]" if MODEL in chosen.options else ""
    tokens = "[:TOKENS]" if TOKENS in chosen.options else ""
    return f"write {chosen.name}{model}{tokens}"
