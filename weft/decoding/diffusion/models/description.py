"""What a model's folder is, without its weights: for who lets another engine run it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weft.core.errors import CapabilityError
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.models.family import Body, Family
from weft.decoding.diffusion.models.fields import CONFIG, Fields
from weft.decoding.diffusion.models.recognise import OWN, Find, base_of, recognised
from weft.decoding.diffusion.models.traits import traits_of


@dataclass(frozen=True, slots=True)
class Description:
    """`body`: whose layers it has. `preset`: what it is decoded with, unless told otherwise."""

    family: Family
    body: Body
    traits: Traits
    preset: str


def described(path: Path, *, find: Find | None = None) -> Description:
    """Reads JSON files only. `find` locates the base of an adapter folder by its name.

    Raises: `CapabilityError` for what is no diffusion model that weft runs, an adapter folder
    without weights of its own among them where there is no `find`; what `find` raises.
    """
    config = Fields.read(path / CONFIG)
    family = recognised(config)
    own = config.within(OWN)
    if "base" in own:
        if find is None:
            raise CapabilityError(
                f"{path}: an adapter of {own.text('base')}, and no whole model",
                hint="`use: local` runs it in this process; elsewhere, merge it with its base",
            )
        return _adapter(path, config, family, find)
    if family.body is None:
        raise CapabilityError(
            f"{path}: a {family.model_type} model is not run here", hint=family.refusal or None
        )
    vocabulary = config.whole(family.key(config, "vocab_size"), 2, 1 << 20)
    traits = traits_of(path, config, family, vocabulary)
    return Description(family, family.body, traits, own.text("preset", family.preset))


def _adapter(path: Path, config: Fields, family: Family, find: Find) -> Description:
    own = config.within(OWN)
    base = base_of(path, own, find)
    if base is None or family.body is None:
        raise own.wrong("base", "no base of an adapter")
    vocabulary = Fields.read(base / CONFIG).whole("vocab_size", 2, 1 << 20)
    traits = traits_of(path, config, family, vocabulary)
    return Description(family, family.body, traits, own.text("preset", family.preset))
