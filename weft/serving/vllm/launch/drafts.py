"""Heads and drafters that are here: whether vLLM can load a folder, and how far it drafts.

Reads config.json only. What vLLM would load without a word and compute wrongly is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from weft.core.errors import CapabilityError, SpecError
from weft.decoding.config_fields import CONFIG, ConfigFields

_SPECULATORS: Final = "speculators_model_type"
_MOST: Final = 1024


def draft_tokens(method: str, folder: Path | None) -> int | None:
    """The number of tokens that the drafter in `folder` was made for; None where it says none.

    Raises: `SpecError` for a folder that is no drafter of `method` in a format of vLLM's.
    """
    if folder is None or method not in _READERS:
        return None
    try:
        config = ConfigFields.read(folder / CONFIG)
        if "weft_drafter" in config:
            raise _convert(folder, "weft's own format")
        tokens = _READERS[method](folder, config)
    except CapabilityError as error:
        raise SpecError(error.message, hint=error.hint) from error
    return tokens


def _eagle3(folder: Path, config: ConfigFields) -> int | None:
    names = config.texts("architectures")
    if _SPECULATORS in config:
        config.must_be(_SPECULATORS, "eagle3")
        return _proposed(config)
    if "draft_vocab_size" not in config and not any("Eagle3" in name for name in names):
        raise SpecError(f"{folder} is no EAGLE-3 drafter: its config has no draft_vocab_size")
    return None


def _medusa(folder: Path, config: ConfigFields) -> int | None:
    if "medusa_num_heads" in config:
        # vLLM leaves out the biases of such heads, and finds no model type
        raise _convert(folder, "the format of Medusa's own code")
    config.must_be("model_type", "medusa")
    return config.whole("num_heads", 1, _MOST)


def _dflash(folder: Path, config: ConfigFields) -> int | None:
    if _SPECULATORS in config:
        config.must_be(_SPECULATORS, "dflash", "dflash2")
        return _proposed(config) or config.whole("block_size", 2, _MOST, 8) - 1
    inner = config.within("dflash_config")
    if "target_layer_ids" not in inner and "target_layer_ids" not in config:
        raise SpecError(f"{folder} is no DFlash drafter: its config has no target_layer_ids")
    block = inner if "block_size" in inner else config
    return block.whole("block_size", 2, _MOST, 16) - 1


_READERS: Final[Mapping[str, Callable[[Path, ConfigFields], int | None]]] = MappingProxyType(
    {"eagle3": _eagle3, "medusa": _medusa, "dflash": _dflash}
)


def _proposed(config: ConfigFields) -> int | None:
    """The number of tokens of speculators' first proposal method."""
    methods = config.within("speculators_config").objects("proposal_methods")
    tokens = methods[0].get("speculative_tokens") if methods else None
    return tokens if isinstance(tokens, int) and 0 < tokens <= _MOST else None


def _convert(folder: Path, form: str) -> SpecError:
    return SpecError(
        f"{folder} is a drafter in {form}, which vLLM does not load as it is",
        hint=f"weft export-drafter {folder} --model MODEL --out NEW writes one that it does",
    )
