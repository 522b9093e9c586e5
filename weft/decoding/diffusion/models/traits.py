"""What policies may know of a model, read from its folder. Knows no weights."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from weft.decoding.diffusion.adapter import Attention, Traits
from weft.decoding.diffusion.models.family import Family
from weft.decoding.diffusion.models.fields import Fields
from weft.decoding.diffusion.models.recognise import OWN
from weft.decoding.diffusion.models.tokens import mask_text, special_ids

FORMAT: Final = 1
_GENERATION: Final = "generation_config.json"
_LARGEST_BLOCK: Final = 4096
_BD3LM: Final = "bd3lm"
_BD3LM_BLOCK: Final = 32
_MOST_UNNAMED: Final = 1 << 16


def traits_of(folder: Path, config: Fields, family: Family, vocabulary: int) -> Traits:
    """Of a model with `vocabulary` logits.

    Raises: `CapabilityError` naming the key that is missing or wrong.
    """
    if OWN in config:
        return _own(folder, config, vocabulary)
    block = _block(folder, config, family)
    attention: Attention = "block_causal" if block else family.attention
    mask = _mask(folder, config, family, vocabulary)
    ends = _ends(folder, config, family, vocabulary)
    return Traits(
        vocabulary=vocabulary,
        mask_id=mask,
        end_ids=ends - {mask},
        banned=_unnamed(config, vocabulary) | _unreadable(folder, family, vocabulary) | {mask},
        attention=attention,
        block=block,
        shifted=family.shifted,
    )


def unreadable(folder: Path, family: Family, vocabulary: int) -> frozenset[int]:
    """Tokens of a prompt that stand for what this model cannot read here."""
    return _unreadable(folder, family, vocabulary)


def _own(folder: Path, config: Fields, vocabulary: int) -> Traits:
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
        ends = _eos(folder, config, vocabulary)
    if ends & banned:
        raise own.wrong("end_ids", "one of them is never written: banned, or the mask")
    return Traits(
        vocabulary=vocabulary,
        mask_id=mask,
        end_ids=ends,
        banned=banned,
        attention="block_causal" if blocks else "full",
        block=own.whole("block", 1, _LARGEST_BLOCK) if blocks else 0,
        shifted=own.flag("shifted", default=False),
    )


def _block(folder: Path, config: Fields, family: Family) -> int:
    """Tiny-A2D's configs do not say how a model was trained; the names of its folders do."""
    if not family.block_key:
        return family.block
    named = _BD3LM_BLOCK if _BD3LM in folder.resolve().name.lower() else 0
    default = family.block or named
    if family.block_key not in config:
        return default
    return config.whole(family.block_key, 1, _LARGEST_BLOCK)


def _mask(folder: Path, config: Fields, family: Family, vocabulary: int) -> int:
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


def _ends(folder: Path, config: Fields, family: Family, vocabulary: int) -> frozenset[int]:
    named = special_ids(folder, family.end_tokens, vocabulary).values()
    ends = _eos(folder, config, vocabulary) | frozenset(named)
    return ends or frozenset(one for one in family.end_ids if one < vocabulary)


def _eos(folder: Path, config: Fields, vocabulary: int) -> frozenset[int]:
    ends = config.ids("eos_token_id", vocabulary)
    habits = folder / _GENERATION
    return ends | Fields.read(habits).ids("eos_token_id", vocabulary) if habits.is_file() else ends


def _unnamed(config: Fields, vocabulary: int) -> frozenset[int]:
    """Rows that only fill up a table of embeddings."""
    if "embedding_size" not in config or "vocab_size" not in config:
        return frozenset()
    named = config.whole("vocab_size", 1, vocabulary)
    return frozenset(range(max(named, vocabulary - _MOST_UNNAMED), vocabulary))


def _unreadable(folder: Path, family: Family, vocabulary: int) -> frozenset[int]:
    return frozenset(special_ids(folder, family.unreadable, vocabulary).values())
