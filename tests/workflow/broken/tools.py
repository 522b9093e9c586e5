"""What the workflows of this folder would call."""

from dataclasses import dataclass

import weft


@dataclass
class Hit:
    text: str


@weft.tool
def search(query: str, limit: int = 3) -> list[Hit]:
    """Find texts."""
    return [Hit(query)] * limit


def longest(texts: list[str], key: int = 0) -> str:
    return max(texts, key=len)
