"""All diffusion decoders by name; their presets are imported on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.core.errors import SpecError
from weft.core.suggestion import unknown
from weft.core.values import DecodeSpec, Lossless, Lossy
from weft.decoding.diffusion.preset import DiffusionPreset, Options
from weft.decoding.options import read_pairs

if TYPE_CHECKING:
    from weft.decoding.diffusion.adapter import ModelTraits
    from weft.decoding.diffusion.ports import DecoderConfig


NAMES: Final = (
    *("sequential", "llada", "random", "dilated"),
    *("dream_origin", "dream_maskgit", "dream_margin", "dream_entropy", "dimple"),
    *("threshold", "factor", "entropy_threshold", "entropy_bound"),
    *("klass", "hierarchy", "credit", "smooth", "wino", "rcr", "remdm"),
    *("llada2", "llada21_quality", "llada21_speed", "llada22"),
    *("adablock", "daedal", "slowfast"),
    *("fastdllm_prefix", "fastdllm_dual", "freecache", "delayed", "interval", "vicinity"),
    *("sdar", "fastdllm_v2", "flashdlm", "learn2pd", "dparallel"),
    *("self_speculative", "uniform_state", "adaptive"),
)
"""Each is a row of a module of `presets`."""


def preset(name: str) -> DiffusionPreset:
    """The decoder of that name. Raises: `SpecError`, which lists the names."""
    if name in NAMES:
        from weft.decoding.diffusion.presets import composed, standard

        return next(one for one in (*standard.PRESETS, *composed.PRESETS) if one.name == name)
    raise unknown(SpecError, "diffusion decoder", name, NAMES)


def decoder_config(name: str, traits: ModelTraits, options: Options) -> DecoderConfig:
    """A preset's configuration. Raises: `SpecError`, and what `DiffusionPreset.make` raises."""
    chosen = preset(name)
    for option in options:
        if option not in chosen.options:
            has = f"it has: {', '.join(chosen.options)}" if chosen.options else "it has none"
            raise SpecError(f"the decoder {name!r} has no option {option!r}", hint=has)
    return chosen.make(traits, options)


_BLOCK = "block"
"""An option of most decoders, and the main one of none."""


def parse_diffusion(text: str) -> DecodeSpec:
    """The decoder that `text` names: `NAME[:VALUE][,option=value[,value]...]...`.

    VALUE is that of the decoder's first option other than the block size; `NAME:option=value` is
    accepted, too. Decoders that may write another text than plain decoding are `Lossy`.

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
    """`parts` of the text, with the further values of a list option joined to its first."""
    pairs: list[str] = []
    for part in parts:
        named = pairs[-1].partition("=")[0].strip() if pairs else ""
        if named in chosen.lists and part.strip() and "=" not in part:
            pairs[-1] = f"{pairs[-1].rstrip()},{part.strip()}"
        else:
            pairs.append(part)
    return pairs


def _pair(chosen: DiffusionPreset, words: list[str]) -> str:
    """The part after the colon, as `option=value`."""
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
