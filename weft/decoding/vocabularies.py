"""Whether two models share a vocabulary, except for padding. Reads tokenizer files only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft.core.errors import CapabilityError

_FILE: Final = "tokenizer.json"
_MOST_BYTES: Final = 64 << 20
_PADDING: Final = 1024
"""Embeddings of one vocabulary may differ by so many padding rows."""


@dataclass(frozen=True, slots=True)
class ModelPair:
    """The names of two models in errors: a small model, and the one that it assists."""

    small: str = "draft model"
    large: str = "target"

    @property
    def hint(self) -> str:
        """The hint of an error."""
        return f"a {self.small} needs the {self.large}'s own tokenizer"


DRAFTS: Final = ModelPair()


def check_sizes(large: int, small: int, pair: ModelPair = DRAFTS) -> None:
    """Raises: `CapabilityError` for vocabularies that differ by more than padding."""
    if abs(large - small) > _PADDING:
        raise CapabilityError(
            f"the {pair.small} has {small} tokens and the {pair.large} {large}", hint=pair.hint
        )


def check_tokens(
    large: Path | None, small: Path | None, common: int, pair: ModelPair = DRAFTS
) -> None:
    """Compare the tokenizers of two folders up to the token `common`, if both have one.

    Raises: `CapabilityError` for different tokens, or a broken tokenizer file.
    """
    if (
        large is None
        or small is None
        or not ((large / _FILE).is_file() and (small / _FILE).is_file())
    ):
        return
    theirs, ours = _tokens(large / _FILE), _tokens(small / _FILE)
    for token, text in sorted(ours.items()):
        if token < common and theirs.get(token, text) != text:
            raise CapabilityError(
                f"token {token} is {text!r} for the {pair.small}, {theirs[token]!r} for the"
                f" {pair.large}",
                hint=pair.hint,
            )


def _tokens(path: Path) -> Mapping[int, str]:
    """The texts of all tokens, by id."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise CapabilityError(f"{path} is larger than {_MOST_BYTES >> 20} MB")
        read = json.loads(path.read_text("utf-8"))
        words = read["model"]["vocab"]
        if isinstance(words, list):  # pairs of a text and its score
            texts = {number: str(pair[0]) for number, pair in enumerate(words)}
        else:
            texts = {int(number): str(text) for text, number in words.items()}
        return texts | {int(each["id"]): str(each["content"]) for each in read["added_tokens"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise CapabilityError(f"{path} is no tokenizer: {error}") from error
