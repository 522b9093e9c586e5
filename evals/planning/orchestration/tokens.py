"""Counts and cuts tokens by one rule for all systems. Knows no model's vocabulary.

On the texts of these tasks the rule is within 11 % of SmolLM2's byte-pair encoding.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(r" ?[A-Za-z]{1,7}|\d| ?[^\sA-Za-z\d]{1,2}|\s")


def split(text: str) -> list[str]:
    """The tokens of `text`; joined they are `text` again."""
    return _TOKEN.findall(text)


def count(text: str) -> int:
    """How many tokens `text` has."""
    return len(split(text))
