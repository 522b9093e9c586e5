"""Diffusion decoders as people write them: `threshold:0.9`, `factor,factor=2`. Makes none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.core.errors import SpecError
from weft.core.values import DecodeSpec, Lossless, Lossy
from weft.decoding.diffusion.catalogue import preset
from weft.decoding.option_text import read_pairs

if TYPE_CHECKING:
    from weft.decoding.diffusion.preset import DiffusionPreset

_BLOCK = "block"
"""An option of most of them, and the main one of none."""


def parse_diffusion(text: str) -> DecodeSpec:
    """The decoder that `text` names: `NAME[:VALUE][,option=value[,value]...]...`.

    VALUE is that of the decoder's first option but the size of blocks; `NAME:option=value` is
    understood, too. All that is not plain decoding may write another text than it, and comes as
    `Lossy`.

    Raises: `SpecError` for a name or an option that no diffusion decoder has.
    """
    head, *pairs = text.strip().split(",")
    name, *words = (part.strip() for part in head.split(":"))
    chosen = preset(name)
    pairs = _joined(chosen, [_pair(chosen, words), *pairs] if words else pairs)
    options = read_pairs(name, chosen.options, pairs, {})
    kind = Lossless if chosen.plain else Lossy
    return kind(name, tuple(options.items()))


def _joined(chosen: DiffusionPreset, parts: list[str]) -> list[str]:
    """`parts` of the text with the further values of an option of several beside its first."""
    pairs: list[str] = []
    for part in parts:
        named = pairs[-1].partition("=")[0].strip() if pairs else ""
        if named in chosen.lists and part.strip() and "=" not in part:
            pairs[-1] = f"{pairs[-1].rstrip()},{part.strip()}"
        else:
            pairs.append(part)
    return pairs


def _pair(chosen: DiffusionPreset, words: list[str]) -> str:
    """What stands after the colon, as `option=value`."""
    word = ":".join(words)  # a folder may have one
    if "=" in word:
        return word
    own = [name for name in chosen.options if name != _BLOCK]
    if not own or not word:
        raise SpecError(f"the decoder {chosen.name!r} has no use for {word!r}", hint=_form(chosen))
    return f"{own[0]}={word}"


def _form(chosen: DiffusionPreset) -> str:
    own = [name for name in chosen.options if name != _BLOCK]
    first = f"[:{own[0].upper()}]" if own else ""
    further = "".join(f"[,{name}=…]" for name in chosen.options if name not in own[:1])
    return f"write {chosen.name}{first}{further}"
