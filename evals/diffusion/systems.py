"""What is measured: presets with their options, and the model that each of them is for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.catalogue import NAMES, decoder_config, preset
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.ports import DecoderConfig

Option = str | int | float | bool
SEQUENTIAL: Final = "sequential"
_SEVERAL: Final[Mapping[str, tuple[Mapping[str, Option], ...]]] = {
    "threshold": ({"threshold": 0.5}, {"threshold": 0.7}, {"threshold": 0.9}, {"threshold": 1.0}),
    "factor": ({"factor": 1.0}, {"factor": 2.0}),
    "entropy_bound": ({"nats": 0.01}, {"nats": 0.5}),
}
_MODELS: Final[Mapping[str, str]] = {
    "sdar": "block",
    "fastdllm_v2": "block",
    "llada2": "block",
    "dparallel": "dparallel",
}
"""Those that are not for the full model."""
_ELSEWHERE: Final = ("flashdlm", "llada22")
"""One takes a supervisor that knows the language, one a model with control tokens."""


@dataclass(frozen=True, slots=True)
class System:
    """A preset as it is asked for. `model` is the list model it runs on."""

    name: str
    preset: str
    options: Mapping[str, Option] = field(default_factory=dict)
    model: str = "full"

    def plugs(self, traits: ModelTraits) -> DecoderConfig:
        """Raises: what `decoder_config` raises."""
        return decoder_config(self.preset, traits, self.options)


_NAMES: Final = ",".join(map(str, range(words.FIRST_NAME, words.FIRST_NAME + len(words.NAMES))))
_ITEMS: Final = System("adablock_items", "adablock", {"delimiters": _NAMES})
"""A list has no sentences: every one of its items ends one."""


def systems() -> Iterator[System]:
    """Every preset, some with several settings; `sequential` comes first."""
    for name in (SEQUENTIAL, *(one for one in NAMES if one not in (SEQUENTIAL, *_ELSEWHERE))):
        model = _MODELS.get(name, "full")
        for options in _SEVERAL.get(name, ({},)):
            told = "".join(f"_{value}" for value in options.values())
            yield System(f"{name}{told}", name, options, model)
        if name == _ITEMS.preset:
            yield _ITEMS


def described(name: str) -> str:
    """What was claimed for a preset, and where."""
    return preset(name).published
