"""All methods by name. Reads a method's module only when it is asked for."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from weft.core.errors import SpecError
from weft.decoding.speculative.method import Method
from weft.decoding.speculative.preset import Options, Preset

if TYPE_CHECKING:
    from weft.decoding.network.network import Network

NAMES: Final = (
    "lookup",
    "suffix",
    "hybrid",
    "draft_model",
    "self_draft",
    "sequoia",
    "medusa",
    "medusa_typical",
    "ppd",
    "pass",
    "eagle",
    "dflash",
    "hidden_transfer",
    "lookahead",
    "lexical_units",
    "lexical_units_verified",
    "pearl",
    "continuous",
    "llmcad",
    "easyspec",
    "auto",
)
"""Each is a module of `methods`, with its `PRESET`; `pass` is the module `pass_`."""

_STAGES: Final = (
    "PipeInfer divides the target into stages on devices of their own, and a model in this process"
    " is on one"
)
NOT_HERE: Final = MappingProxyType(
    {"pipeinfer": (_STAGES, "take continuous: its drafting, without the stages")}
)
"""Published decoders that people may ask for: why there is none, and what comes near it."""


def preset(name: str) -> Preset:
    """Raises: `SpecError` for a name that is none, with those that there are."""
    if name in NOT_HERE:
        why, instead = NOT_HERE[name]
        raise SpecError(f"there is no decoder {name!r}: {why}", hint=instead)
    if name not in NAMES:
        close = get_close_matches(name, NAMES, 1)
        meant = f"did you mean {close[0]!r}? " if close else ""
        raise SpecError(
            f"there is no decoder {name!r}", hint=f"{meant}there are: {', '.join(NAMES)}"
        )
    module = "pass_" if name == "pass" else name
    found: Preset = import_module(f"weft.decoding.speculative.methods.{module}").PRESET
    return found


def made(name: str, network: Network, options: Options) -> Method:
    """The method of that name for a network. Raises: `SpecError`, and what `Preset.make` raises."""
    chosen = preset(name)
    for option in options:
        if option not in chosen.options:
            has = f"it has: {', '.join(chosen.options)}" if chosen.options else "it has none"
            raise SpecError(f"the decoder {name!r} has no option {option!r}", hint=has)
    return chosen.make(network, options)
