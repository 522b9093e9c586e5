"""All presets by name. Reads a preset's module only when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Final

from weft.core.errors import SpecError

if TYPE_CHECKING:
    from weft.decoding.diffusion.adapter import Traits
    from weft.decoding.diffusion.plugs import Plugs
    from weft.decoding.diffusion.preset import DiffusionPreset, Options

_MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "ordered": ("sequential", "llada", "random", "dilated"),
    "dream": ("dream_origin", "dream_maskgit", "dream_margin", "dream_entropy", "dimple"),
    "certain": ("threshold", "factor", "entropy_threshold", "entropy_bound"),
    "remembering": ("klass", "hierarchy", "credit", "smooth"),
    "reopening": ("wino", "rcr", "remdm"),
    "editing": ("llada2", "llada21_quality", "llada21_speed", "llada22"),
    "lengths": ("adablock", "daedal", "slowfast"),
    "cached": ("fastdllm_prefix", "fastdllm_dual", "freecache", "delayed", "interval", "vicinity"),
    "blocks": ("sdar", "fastdllm_v2"),
    "supervised": ("flashdlm",),
    "trained": ("learn2pd", "dparallel"),
    "speculating": ("self_speculative",),
    "uniform": ("uniform_state",),
    "adaptive": ("adaptive",),
}
NAMES: Final = tuple(name for names in _MODULES.values() for name in names)
"""Each stands in the tuple `PRESETS` of a module of `presets`."""


def preset(name: str) -> DiffusionPreset:
    """Raises: `SpecError` for a name that is none, with those that there are."""
    for module, names in _MODULES.items():
        if name in names:
            found = import_module(f"weft.decoding.diffusion.presets.{module}")
            presets: tuple[DiffusionPreset, ...] = found.PRESETS
            return next(one for one in presets if one.name == name)
    close = get_close_matches(name, NAMES, 1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    raise SpecError(
        f"there is no diffusion decoder {name!r}", hint=f"{meant}there are: {', '.join(NAMES)}"
    )


def plugs_for(name: str, traits: Traits, options: Options) -> Plugs:
    """The plugs of a preset. Raises: `SpecError`, and what `DiffusionPreset.make` raises."""
    chosen = preset(name)
    for option in options:
        if option not in chosen.options:
            has = f"it has: {', '.join(chosen.options)}" if chosen.options else "it has none"
            raise SpecError(f"the decoder {name!r} has no option {option!r}", hint=has)
    return chosen.make(traits, options)
