"""What a model's folder is, without its weights: for who lets another engine run it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weft.core.errors import CapabilityError
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.models.family import Body, Family
from weft.decoding.diffusion.models.fields import CONFIG, Fields
from weft.decoding.diffusion.models.recognise import OWN, recognised
from weft.decoding.diffusion.models.traits import traits_of


@dataclass(frozen=True, slots=True)
class Description:
    """`body`: whose layers it has. `preset`: what it is decoded with, unless told otherwise."""

    family: Family
    body: Body
    traits: Traits
    preset: str


def described(path: Path) -> Description:
    """Reads JSON files only.

    Raises: `CapabilityError` for what is no diffusion model that weft runs, an adapter folder
    without weights of its own among them.
    """
    config = Fields.read(path / CONFIG)
    family = recognised(config)
    own = config.within(OWN)
    if "base" in own:
        raise own.wrong("base", "an adapter, and no whole model")
    if family.body is None:
        raise CapabilityError(
            f"{path}: a {family.model_type} model is not run here", hint=family.refusal or None
        )
    vocabulary = config.whole(family.key(config, "vocab_size"), 2, 1 << 20)
    traits = traits_of(path, config, family, vocabulary)
    return Description(family, family.body, traits, own.text("preset", family.preset))
