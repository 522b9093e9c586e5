"""Spellings of control tokens in text, those among them that only look like one.

Only tells: what is tokenised is the text as it came. A tokenizer that normalises its input makes
the real token of a look-alike.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from html import unescape
from typing import Final

_SAME: Final = str.maketrans(
    {
        "\u2039": "<",
        "\u203a": ">",
        "\u2329": "<",
        "\u232a": ">",
        "\u27e8": "<",
        "\u27e9": ">",
        "\u276e": "<",
        "\u276f": ">",
        "\u3008": "<",
        "\u3009": ">",
        "\u01c0": "|",
        "\u2223": "|",
        "\u2758": "|",
        "\u2502": "|",
        "\u00a6": "|",
        "\u05c0": "|",
        "\u0430": "a",
        "\u0441": "c",
        "\u0455": "s",
        "\u043a": "k",
        "\u043c": "m",
        "\u0435": "e",
        "\u043e": "o",
        "\u0456": "i",
        "\u0442": "t",
        "\u2013": "-",
        "\u2014": "-",
        "\u2581": "_",
    }
)


def folded(text: str) -> str:
    """What `text` looks like: entities read, compatible forms and look-alikes as ASCII, without
    case, blanks, marks and characters that take no room.
    """
    plain = unicodedata.normalize("NFKC", unescape(text)).translate(_SAME).casefold()
    split = unicodedata.normalize("NFD", plain).translate(_SAME)
    return "".join(char for char in split if not _unseen(char))


def spelled_out(text: str, spellings: Collection[str]) -> tuple[str, ...]:
    """Those of `spellings` that `text` holds, or seems to hold, sorted."""
    seen = folded(text)
    return tuple(sorted(one for one in spellings if folded(one) and folded(one) in seen))


def _unseen(char: str) -> bool:
    return char.isspace() or unicodedata.category(char) in ("Cf", "Cc", "Mn", "Me")
