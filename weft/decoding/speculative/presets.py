"""The speculative decoders by name: presets, options, and their parser.

Imports a decoder's module only when it is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from weft.core.errors import SpecError
from weft.core.suggestion import unknown
from weft.core.values import DecodeSpec, Lossless, Lossy
from weft.decoding.options import PLAIN, PLAIN_NAMES, Option, read_pairs
from weft.decoding.speculative.drafter import SpeculativeMethod

if TYPE_CHECKING:
    from weft.decoding.network.network import Network


Options = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class PublishedSpeed:
    """Tokens committed for each pass of the target, its own included, and the source."""

    tokens_per_pass: float
    where: str


@dataclass(frozen=True, slots=True)
class Preset:
    """A named decoder. `make` builds the method for a network, once for all of its sequences.

    It raises `SpecError` for invalid options, `CapabilityError` or `ModelNotFound` for missing
    weights or those of another model.

    lossless    the text is that of plain decoding; else it must be requested as lossy
    needs       what it requires besides the target: a draft model, trained weights; empty: nothing
    options     names of its options; `num_speculative_tokens` is the most nodes of a draft
    published   None: there is no published result in these terms
    """

    name: str
    summary: str
    make: Callable[[Network, Options], SpeculativeMethod]
    lossless: bool = True
    needs: str = ""
    options: tuple[str, ...] = ()
    published: PublishedSpeed | None = None


_DRAFTERS: Final = "weft.decoding.speculative.drafters."
MODULES: Final = MappingProxyType(
    {
        "lookup": _DRAFTERS + "ngram.lookup",
        "suffix": _DRAFTERS + "ngram.suffix",
        "hybrid": _DRAFTERS + "ngram.hybrid",
        "draft_model": _DRAFTERS + "model.draft_model",
        "self_draft": _DRAFTERS + "model.draft_model",
        "sequoia": _DRAFTERS + "model.sequoia",
        "medusa": _DRAFTERS + "trained.medusa",
        "medusa_typical": _DRAFTERS + "trained.medusa",
        "ppd": _DRAFTERS + "trained.ppd",
        "pass": _DRAFTERS + "trained.pass_",
        "eagle": _DRAFTERS + "trained.eagle",
        "dflash": _DRAFTERS + "trained.dflash",
        "hidden_transfer": _DRAFTERS + "trained.hidden_transfer",
        "lookahead": _DRAFTERS + "ngram.lookahead",
        "lexical_units": _DRAFTERS + "trained.lexical_units",
        "lexical_units_verified": _DRAFTERS + "trained.lexical_units",
        "pearl": _DRAFTERS + "model.pearl",
        "continuous": _DRAFTERS + "model.continuous",
        "llmcad": _DRAFTERS + "model.llmcad",
        "easyspec": _DRAFTERS + "model.easyspec",
        "auto": _DRAFTERS + "auto.preset",
    }
)
"""By name: the module whose `PRESETS` contains it."""
NAMES: Final = tuple(MODULES)

_STAGES: Final = (
    "PipeInfer divides the target into stages on devices of their own, and a model in this process"
    " is on one"
)
NOT_HERE: Final = MappingProxyType(
    {"pipeinfer": (_STAGES, "take continuous: its drafting, without the stages")}
)
"""Published decoders that are missing: the reason, and the closest alternative."""


def preset(name: str) -> Preset:
    """The preset of that name. Raises: `SpecError`, which lists the names."""
    if name in NOT_HERE:
        why, instead = NOT_HERE[name]
        raise SpecError(f"there is no decoder {name!r}: {why}", hint=instead)
    if name not in NAMES:
        raise unknown(SpecError, "decoder", name, NAMES)
    presets: tuple[Preset, ...] = import_module(MODULES[name]).PRESETS
    return next(one for one in presets if one.name == name)


def made(name: str, network: Network, options: Options) -> SpeculativeMethod:
    """The method of that name for a network. Raises: `SpecError`, and what `Preset.make` raises."""
    chosen = preset(name)
    for option in options:
        if option not in chosen.options:
            has = f"it has: {', '.join(chosen.options)}" if chosen.options else "it has none"
            raise SpecError(f"the decoder {name!r} has no option {option!r}", hint=has)
    return chosen.make(network, options)


def whole(options: Options, name: str, default: int, low: int, high: int) -> int:
    """The option `name`, a whole number from `low` to `high`."""
    value = options.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise SpecError(f"{name} is {value!r}", hint=f"a whole number from {low} to {high}")
    return value


def share(options: Options, name: str, default: float) -> float:
    """The option `name`, a number from 0 to 1."""
    value = options.get(name, default)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not isfinite(float(value)) or not 0.0 <= float(value) <= 1.0:
        raise SpecError(f"{name} is {value!r}", hint="a number from 0 to 1")
    return float(value)


def switch(options: Options, name: str, *, default: bool) -> bool:
    """The option `name`, true or false."""
    value = options.get(name, default)
    if not isinstance(value, bool):
        raise SpecError(f"{name} is {value!r}", hint="true or false")
    return value


def text(options: Options, name: str) -> str | None:
    """The option `name`, a text; None by default."""
    value = options.get(name)
    if value is not None and (not isinstance(value, str) or not value):
        raise SpecError(f"{name} is {value!r}", hint="a text, such as a folder's path")
    return value


TOKENS: Final = "num_speculative_tokens"
MODEL: Final = "model"


def parse_decode(text: str) -> DecodeSpec:
    """The decoder that `text` names: `NAME[:MODEL][:TOKENS][,option=value]...`.

    One that may change the text has a name of its own, and is `Lossy`.

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
    """Options between colons: a model, where the decoder has one, and a number of tokens."""
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
