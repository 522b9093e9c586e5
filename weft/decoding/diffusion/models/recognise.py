"""Whether a folder holds a diffusion model, and whose tokenizer it uses. Knows no torch."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from weft.core.errors import CapabilityError
from weft.decoding.diffusion.models.families import OURS, family_of
from weft.decoding.diffusion.models.family import Family
from weft.decoding.diffusion.models.fields import CONFIG, Fields

OWN: Final = "weft_diffusion"
_TOKENIZER: Final = "tokenizer.json"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Find = Callable[[str], Path]
"""Where the model of that name is."""


def is_diffusion(path: Path) -> bool:
    """Whether config.json says so; false where it cannot be read. Reads nothing else."""
    try:
        recognised(Fields.read(path / CONFIG))
    except CapabilityError:
        return False
    return True


def recognised(config: Fields) -> Family:
    """The family of a config. Raises: `CapabilityError` where there is none."""
    model_type = config.text("model_type", "")
    if OWN in config:
        config.within(OWN)
        if model_type not in OURS:
            raise config.wrong("model_type", f"not one of {', '.join(OURS)}")
        return OURS[model_type]
    family = family_of(model_type, config.texts("architectures"))
    if family is None:
        raise config.wrong("model_type", "no diffusion model that weft knows")
    return family


def base_of(path: Path, own: Fields, find: Find | None) -> Path | None:
    """The folder whose weights an adapter folder changes; None for one with weights of its own.

    `base` is the name of a folder beside this one, or of a model that `find` knows.

    Raises: `CapabilityError` where it is not there, and what `find` raises.
    """
    if "base" not in own:
        return None
    name = own.text("base")
    if not _NAME.fullmatch(name):
        raise own.wrong("base", "no name of a model")
    beside = path.resolve().parent / name
    if (beside / CONFIG).is_file():
        return beside
    if find is None:
        raise own.wrong("base", "no model folder beside this one")
    return find(name)


def tokenizer_folder(path: Path, find: Find | None = None) -> Path:
    """The folder with the tokenizer and chat template of a diffusion model.

    Raises: `CapabilityError`, and what `find` raises.
    """
    if (path / _TOKENIZER).is_file():
        return path
    own = Fields.read(path / CONFIG).within(OWN)
    return base_of(path, own, find) or path
