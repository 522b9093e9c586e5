"""A model folder without its weights: family, tokenizer, special tokens, traits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft.core.errors import CapabilityError
from weft.decoding.adapters.folder import FindModel, base_of
from weft.decoding.config_fields import CONFIG, ConfigFields
from weft.decoding.diffusion.adapter import Attention, ModelTraits
from weft.decoding.diffusion.models.families import OURS, LayerKind, ModelFamily, family_of

OWN: Final = "weft_diffusion"
_TOKENIZER: Final = "tokenizer.json"


def is_diffusion(path: Path) -> bool:
    """Whether config.json is of a diffusion model; false where it cannot be read."""
    try:
        family_in(ConfigFields.read(path / CONFIG))
    except CapabilityError:
        return False
    return True


def family_in(config: ConfigFields) -> ModelFamily:
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


def tokenizer_folder(path: Path, find: FindModel | None = None) -> Path:
    """The folder with the tokenizer and chat template of a diffusion model.

    Raises: `CapabilityError`, and what `find` raises.
    """
    if (path / _TOKENIZER).is_file():
        return path
    own = ConfigFields.read(path / CONFIG).within(OWN)
    return base_of(path, own, find) or path


_LARGEST_TOKENIZER: Final = 1 << 26
_TOKENIZER_FILES: Final = ("tokenizer_config.json", "added_tokens.json", "tokenizer.json")


def special_ids(folder: Path, texts: tuple[str, ...], below: int) -> dict[str, int]:
    """Ids under `below` of those `texts` that are special tokens.

    Raises: `CapabilityError` for a broken tokenizer file.
    """
    found: dict[str, int] = {}
    for name in _TOKENIZER_FILES:
        if len(found) < len(texts) and (folder / name).is_file():
            for text, number in _added_tokens(
                ConfigFields.read(folder / name, _LARGEST_TOKENIZER), name, texts
            ):
                found.setdefault(text, number)
    return {text: number for text, number in found.items() if 0 <= number < below}


def mask_text(folder: Path) -> str | None:
    """The text of the tokenizer's mask token, if it names one."""
    path = folder / _TOKENIZER_FILES[0]
    if not path.is_file():
        return None
    config = ConfigFields.read(path, _LARGEST_TOKENIZER)
    try:
        return config.text("mask_token", "") or None
    except CapabilityError:  # an object that contains the text
        return config.within("mask_token").text("content", "") or None


def _added_tokens(fields: ConfigFields, name: str, texts: tuple[str, ...]) -> list[tuple[str, int]]:
    pairs: list[tuple[object, object]] = []
    match name:
        case "tokenizer_config.json":
            for key, value in fields.within("added_tokens_decoder").items():
                if isinstance(value, dict):
                    pairs.append((value.get("content"), key))
        case "added_tokens.json":
            pairs += fields.items()
        case _:
            added = fields.objects("added_tokens")
            pairs += [(entry.get("content"), entry.get("id")) for entry in added]
    numbers = [(text, _id(key)) for text, key in pairs if isinstance(text, str) and text in texts]
    return [(text, number) for text, number in numbers if number is not None]


def _id(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else None


FORMAT: Final = 1
_GENERATION: Final = "generation_config.json"
_LARGEST_BLOCK: Final = 4096
_BD3LM: Final = "bd3lm"
_BD3LM_BLOCK: Final = 32
_MOST_UNNAMED: Final = 1 << 16


def traits_of(
    folder: Path, config: ConfigFields, family: ModelFamily, vocabulary: int
) -> ModelTraits:
    """The traits of a model with `vocabulary` logits.

    Raises: `CapabilityError` naming the key that is missing or wrong.
    """
    if OWN in config:
        return _own(folder, config, vocabulary)
    block = _block_size(folder, config, family)
    attention: Attention = "block_causal" if block else family.attention
    mask = _mask_id(folder, config, family, vocabulary)
    ends = _end_ids(folder, config, family, vocabulary)
    return ModelTraits(
        vocabulary=vocabulary,
        mask_id=mask,
        end_ids=ends - {mask},
        banned=_unnamed(config, vocabulary) | unreadable(folder, family, vocabulary) | {mask},
        attention=attention,
        block=block,
        shifted=family.shifted,
    )


def _own(folder: Path, config: ConfigFields, vocabulary: int) -> ModelTraits:
    own = config.within(OWN)
    own.whole("format", FORMAT, FORMAT)
    own.must_be("attention", "full", "block_causal")
    blocks = own.text("attention") == "block_causal"
    if not blocks:
        own.must_be("block", 0)
    mask = own.whole("mask_id", 0, vocabulary - 1)
    banned = own.ids("banned", vocabulary) | {mask}
    ends = own.ids("end_ids", vocabulary)
    if not ends:
        ends = _eos_ids(folder, config, vocabulary)
    if ends & banned:
        raise own.wrong("end_ids", "one of them is never written: banned, or the mask")
    return ModelTraits(
        vocabulary=vocabulary,
        mask_id=mask,
        end_ids=ends,
        banned=banned,
        attention="block_causal" if blocks else "full",
        block=own.whole("block", 1, _LARGEST_BLOCK) if blocks else 0,
        shifted=own.flag("shifted", default=False),
    )


def _block_size(folder: Path, config: ConfigFields, family: ModelFamily) -> int:
    """Tiny-A2D's configs do not give the block size; the names of its folders do."""
    if not family.block_key:
        return family.block
    named = _BD3LM_BLOCK if _BD3LM in folder.resolve().name.lower() else 0
    default = family.block or named
    if family.block_key not in config:
        return default
    return config.whole(family.block_key, 1, _LARGEST_BLOCK)


def _mask_id(folder: Path, config: ConfigFields, family: ModelFamily, vocabulary: int) -> int:
    if "mask_token_id" in config:
        return config.whole("mask_token_id", 0, vocabulary - 1)
    texts = tuple(dict.fromkeys(text for text in (mask_text(folder), family.mask_token) if text))
    found = special_ids(folder, texts, vocabulary)
    for text in texts:
        if text in found:
            return found[text]
    if family.mask_id is None or family.mask_id >= vocabulary:
        raise config.wrong("mask_token_id", "which token is the mask cannot be told")
    return family.mask_id


def _end_ids(
    folder: Path, config: ConfigFields, family: ModelFamily, vocabulary: int
) -> frozenset[int]:
    named = special_ids(folder, family.end_tokens, vocabulary).values()
    ends = _eos_ids(folder, config, vocabulary) | frozenset(named)
    return ends or frozenset(one for one in family.end_ids if one < vocabulary)


def _eos_ids(folder: Path, config: ConfigFields, vocabulary: int) -> frozenset[int]:
    ends = config.ids("eos_token_id", vocabulary)
    generation = folder / _GENERATION
    return (
        ends | ConfigFields.read(generation).ids("eos_token_id", vocabulary)
        if generation.is_file()
        else ends
    )


def _unnamed(config: ConfigFields, vocabulary: int) -> frozenset[int]:
    """Ids of padding rows of the embedding table."""
    if "embedding_size" not in config or "vocab_size" not in config:
        return frozenset()
    named = config.whole("vocab_size", 1, vocabulary)
    return frozenset(range(max(named, vocabulary - _MOST_UNNAMED), vocabulary))


def unreadable(folder: Path, family: ModelFamily, vocabulary: int) -> frozenset[int]:
    """Prompt tokens of inputs that this model cannot read here."""
    return frozenset(special_ids(folder, family.unreadable, vocabulary).values())


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """`body`: whose layers it has. `preset`: its default decoder."""

    family: ModelFamily
    body: LayerKind
    traits: ModelTraits
    preset: str


def describe(path: Path, *, find: FindModel | None = None) -> ModelDescription:
    """What a folder is; reads JSON files only. `find` locates the base of an adapter folder.

    Raises: `CapabilityError` for what is no diffusion model that weft runs, and for an adapter
    folder without `find`; what `find` raises.
    """
    config = ConfigFields.read(path / CONFIG)
    family = family_in(config)
    own = config.within(OWN)
    if "base" in own and find is None:
        raise CapabilityError(
            f"{path}: an adapter of {own.text('base')}, and no whole model",
            hint="`use: local` runs it in this process; elsewhere, merge it with its base",
        )
    if family.body is None:
        raise CapabilityError(
            f"{path}: a {family.model_type} model is not run here", hint=family.refusal or None
        )
    base = base_of(path, own, find)
    sizes = config if base is None else ConfigFields.read(base / CONFIG)
    vocabulary = sizes.whole(family.key(sizes, "vocab_size"), 2, 1 << 20)
    traits = traits_of(path, config, family, vocabulary)
    return ModelDescription(family, family.body, traits, own.text("preset", family.preset))
