"""Whether a draft model and a target mean the same by a token. Reads files; knows no model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from weft.core.errors import CapabilityError

_FILE: Final = "tokenizer.json"
_MOST_BYTES: Final = 64 << 20
_PADDING: Final = 1024
"""By so many rows embeddings of one vocabulary may differ: they are padded to round sizes."""


def check_sizes(target: int, draft: int) -> None:
    """Raises: `CapabilityError` for vocabularies that differ by more than padding."""
    if abs(target - draft) > _PADDING:
        raise CapabilityError(
            f"the draft model has {draft} tokens and the target {target}",
            hint="a draft model needs the target's own tokenizer",
        )


def check_tokens(target: Path | None, draft: Path | None, common: int) -> None:
    """Compare the tokenizers of two folders, where both have one, up to the token `common`.

    Raises: `CapabilityError` for a token that is another in the other model, or a file that is
    no tokenizer.
    """
    if (
        target is None
        or draft is None
        or not ((target / _FILE).is_file() and (draft / _FILE).is_file())
    ):
        return
    theirs, ours = _tokens(target / _FILE), _tokens(draft / _FILE)
    for token, text in sorted(ours.items()):
        if token < common and theirs.get(token, text) != text:
            raise CapabilityError(
                f"token {token} is {text!r} for the draft model, {theirs[token]!r} for the target",
                hint="a draft model needs the target's own tokenizer",
            )


def _tokens(path: Path) -> Mapping[int, str]:
    """The texts of all tokens, by number."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise CapabilityError(f"{path} is larger than {_MOST_BYTES >> 20} MB")
        read = json.loads(path.read_text("utf-8"))
        words = read["model"]["vocab"]
        if isinstance(words, list):  # pairs of a text and how likely it is
            found = {number: str(pair[0]) for number, pair in enumerate(words)}
        else:
            found = {int(number): str(text) for text, number in words.items()}
        return found | {int(each["id"]): str(each["content"]) for each in read["added_tokens"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise CapabilityError(f"{path} is no tokenizer: {error}") from error
