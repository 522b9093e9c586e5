"""Loading a folder as a network that fills canvases: its layers, weights and traits.

Runs no code that comes with a model, and reads no pickles.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from weft.core.errors import CapabilityError
from weft.decoding.adapters import adapter_file
from weft.decoding.adapters.base import check_base
from weft.decoding.adapters.folder import FindModel, base_of
from weft.decoding.config_fields import CONFIG, ConfigFields
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.models.architecture import (
    CLASSES,
    check_weights,
    config_of,
    weight_files,
)
from weft.decoding.diffusion.models.families import OURS, LayerKind, ModelFamily
from weft.decoding.diffusion.models.folder import (
    OWN,
    family_in,
    tokenizer_folder,
    traits_of,
    unreadable,
)
from weft.decoding.diffusion.models.mixture import load_mixture
from weft.decoding.network import attention
from weft.decoding.network.layers import CheckpointMapping, dtype_of, load_weights
from weft.decoding.network.network import Network
from weft.decoding.network.options import NetworkOptions
from weft.decoding.network.quantization import pack_linears
from weft.decoding.speculative.trained_drafter import Fingerprint

if TYPE_CHECKING:
    from transformers import PreTrainedModel


_ATTENTION: Final = "sdpa"
"""The implementation that has gradients and takes any mask."""


@dataclass(frozen=True, slots=True, eq=False)
class DiffusionModel:
    """A loaded diffusion model.

    family      its model type in config.json
    preset      its default decoder
    unreadable  tokens of a prompt for inputs that are not read here: images
    """

    network: Network
    traits: ModelTraits
    path: Path
    family: str
    preset: str
    unreadable: frozenset[int] = frozenset()

    def check_prompt(self, ids: list[int]) -> None:
        """Raise `CapabilityError` for a prompt with other inputs than text."""
        if self.unreadable.intersection(ids):
            raise CapabilityError(
                f"only the language part of a {self.family} model is run here, and no images",
                hint="leave the images out of the prompt",
            )


@dataclass(frozen=True, slots=True, eq=False)
class TrainableModel:
    """Weights in transformers' own class and attention, with gradients.

    traits  as of `DiffusionModel`
    folder  with its tokenizer
    """

    model: PreTrainedModel
    traits: ModelTraits
    folder: Path


def load(path: Path, options: NetworkOptions, *, find: FindModel | None = None) -> DiffusionModel:
    """Read a diffusion model's folder. `find` locates the base of an adapter folder by its name.

    Raises: `CapabilityError` naming file and key, where the folder is no diffusion model, is broken
    or calls for what is not run here; what `find` raises.
    """
    if options.quantization not in {"auto", "none"}:
        raise CapabilityError(
            f"a diffusion model has no {options.quantization} quantization",
            hint="use quantization: none",
        )
    config = ConfigFields.read(path / CONFIG)
    family = family_in(config)
    model = _weights(path, config, family, options, find)
    with torch.inference_mode():
        pack_linears(model)
    network = Network(model, options)
    traits = traits_of(path, config, family, network.vocabulary_size)
    traits = replace(
        traits,
        digest=Fingerprint.of(network).digest,
        folder=tokenizer_folder(path, find),
        device=options.device,
    )
    preset = config.within(OWN).text("preset", family.preset)
    images = unreadable(path, family, network.vocabulary_size)
    return DiffusionModel(network, traits, path, family.model_type, preset, images)


def load_trainable(
    path: Path, options: NetworkOptions, *, find: FindModel | None = None
) -> TrainableModel:
    """The same model as `load` reads, to be trained. Raises: as `load`."""
    config = ConfigFields.read(path / CONFIG)
    family = family_in(config)
    model = _weights(path, config, family, options, find, _ATTENTION)
    vocabulary: int = model.config.get_text_config().vocab_size
    traits = replace(traits_of(path, config, family, vocabulary), device=options.device)
    return TrainableModel(model, traits, tokenizer_folder(path, find))


def _weights(
    path: Path,
    config: ConfigFields,
    family: ModelFamily,
    options: NetworkOptions,
    find: FindModel | None,
    attends: str = attention.NAME,
) -> PreTrainedModel:
    base = base_of(path, config.within(OWN), find)
    if base is not None:
        return _adapted(path, config, base, options, attends)
    if family.body is None:
        return _by_transformers(path, config, family, options, attends)
    return _published(path, config, family, family.body, options, attends)


def _published(
    path: Path,
    config: ConfigFields,
    family: ModelFamily,
    body: LayerKind,
    options: NetworkOptions,
    attends: str,
) -> PreTrainedModel:
    shape = config_of(config, family, body)
    # reports a wrong config before weights are read
    traits_of(path, config, family, shape.vocab_size)
    check_weights(path, family, body, shape)
    if body == "glm4_moe":
        attention.register()
        mixture = load_mixture(weight_files(path), shape, dtype_of(options), attends)
        return mixture.to(options.device)
    left_out = [f"^{re.escape(start)}" for start in family.ignored]
    kind = type(body, (CLASSES[body],), {"_keys_to_ignore_on_load_unexpected": left_out})
    return load_weights(path, options, CheckpointMapping(kind, shape, family.patterns), attends)


def _by_transformers(
    path: Path, config: ConfigFields, family: ModelFamily, options: NetworkOptions, attends: str
) -> PreTrainedModel:
    """Loaded by transformers' own class for this model type."""
    if family.refusal or family.model_type not in CONFIG_MAPPING:
        hint = family.refusal or "the installed transformers has no such model"
        raise CapabilityError(
            f"{config.path}: a {family.model_type} model is not run here", hint=hint
        )
    return load_weights(path, options, attends=attends)


def _adapted(
    path: Path, config: ConfigFields, base: Path, options: NetworkOptions, attends: str
) -> PreTrainedModel:
    """The base's weights, changed by the folder's adapter file, before they are laid out."""
    own = config.within(OWN)
    there = ConfigFields.read(base / CONFIG)
    body = there.text("model_type", "")
    if body not in OURS:
        raise there.wrong("model_type", f"no base of an adapter: not one of {', '.join(OURS)}")
    family = OURS[body]
    assert family.body is not None
    shape = config_of(there, family, family.body)
    check_weights(base, family, family.body, shape)
    traits_of(path, config, family, shape.vocab_size)
    model = load_weights(base, options, CheckpointMapping(CLASSES[family.body], shape), attends)
    check_base(own, model)
    adapter_file.merge(model, path / own.file("adapter"))
    return model
