"""The ids of special tokens, from a folder's tokenizer files. Knows no model.

Reads the JSON only: no tokenizer is made of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from weft.core.errors import CapabilityError
from weft.decoding.diffusion.models.fields import Fields

_LARGEST_BYTES: Final = 1 << 26
_FILES: Final = ("tokenizer_config.json", "added_tokens.json", "tokenizer.json")


def special_ids(folder: Path, texts: tuple[str, ...], below: int) -> dict[str, int]:
    """Of `texts`, those that are special tokens, with their ids; only ids under `below`.

    Raises: `CapabilityError` for a tokenizer file that is broken.
    """
    found: dict[str, int] = {}
    for name in _FILES:
        if len(found) < len(texts) and (folder / name).is_file():
            for text, number in _added(Fields.read(folder / name, _LARGEST_BYTES), name, texts):
                found.setdefault(text, number)
    return {text: number for text, number in found.items() if 0 <= number < below}


def mask_text(folder: Path) -> str | None:
    """What the tokenizer calls its mask token, if it says so."""
    path = folder / _FILES[0]
    if not path.is_file():
        return None
    config = Fields.read(path, _LARGEST_BYTES)
    try:
        return config.text("mask_token", "") or None
    except CapabilityError:  # as an object, which says its text in it
        return config.within("mask_token").text("content", "") or None


def _added(fields: Fields, name: str, texts: tuple[str, ...]) -> list[tuple[str, int]]:
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
