"""Control tokens in foreign text: ids in a prompt, and spellings that only look like one.

The second defence: a mask in a prompt is never a slot of the answer (`Canvas`). Text is tokenised
as it came; a tokenizer that normalises would turn a look-alike into a control token.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import pairwise
from typing import Final

from weft.core.errors import ModelRequestError

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class ForeignSpan:
    """The tokens [start, stop) of a prompt come from `source`: a user, a tool, a document.

    Raises: `ValueError` for an empty or negative range.
    """

    start: int
    stop: int
    source: str = "user"

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise ValueError(f"no tokens from {self.start} to {self.stop}")


def forged_positions(
    prompt: Sequence[int], foreign: Sequence[ForeignSpan], control: frozenset[int]
) -> tuple[int, ...]:
    """The positions of `control` tokens (mask, end of text, roles, edits) in foreign text.

    Raises: `ValueError` for ranges that overlap or lie outside of the prompt.
    """
    ordered = sorted(foreign, key=lambda one: one.start)
    if any(left.stop > right.start for left, right in pairwise(ordered)):
        raise ValueError("foreign text that overlaps")
    if ordered and ordered[-1].stop > len(prompt):
        raise ValueError(f"foreign text behind the {len(prompt)} tokens of the prompt")
    return tuple(
        at for one in ordered for at in range(one.start, one.stop) if prompt[at] in control
    )


def refuse_forged(
    prompt: Sequence[int], foreign: Sequence[ForeignSpan], control: frozenset[int]
) -> None:
    """Raises: `ModelRequestError` for control tokens in foreign text; it names places, no text."""
    found = forged_positions(prompt, foreign, control)
    if found:
        sources = sorted(
            {one.source for one in foreign for at in found if one.start <= at < one.stop}
        )
        places = ", ".join(map(str, found[:_SHOWN])) + (", ..." if len(found) > _SHOWN else "")
        raise ModelRequestError(
            f"text of the {' and the '.join(sources)} holds control tokens, at {places}",
            hint="encode foreign text without special tokens",
        )


def neutralise(
    prompt: Sequence[int],
    foreign: Sequence[ForeignSpan],
    control: frozenset[int],
    instead: Sequence[int] = (),
) -> tuple[int, ...]:
    """The prompt with `instead` in place of each control token in foreign text.

    Raises: `ValueError` for a control token in `instead`.
    """
    if control & set(instead):
        raise ValueError("a control token instead of a control token")
    places = set(forged_positions(prompt, foreign, control))
    out: list[int] = []
    for at, token in enumerate(prompt):
        out.extend(instead if at in places else [token])
    return tuple(out)


_ALIKE: Final = {
    "<": "\u2039\u2329\u27e8\u276e\u3008",
    ">": "\u203a\u232a\u27e9\u276f\u3009",
    "|": "\u01c0\u2223\u2758\u2502\u00a6\u05c0",
    "-": "\u2013\u2014",
    "_": "\u2581",
}
_CYRILLIC: Final = "\u0430\u0441\u0455\u043a\u043c\u0435\u043e\u0456\u0442"
_SAME: Final = str.maketrans(_CYRILLIC, "acskmeoit") | {
    ord(char): ord(plain) for plain, chars in _ALIKE.items() for char in chars
}


def folded(text: str) -> str:
    """`text` as it appears: entities read, compatible forms and look-alikes as ASCII, without case,
    blanks, marks and zero-width characters.
    """
    plain = unicodedata.normalize("NFKC", unescape(text)).translate(_SAME).casefold()
    split = unicodedata.normalize("NFD", plain).translate(_SAME)
    return "".join(char for char in split if not _invisible(char))


def spelled_out(text: str, spellings: Collection[str]) -> tuple[str, ...]:
    """Those of `spellings` that `text` contains, or appears to contain, sorted."""
    plain = folded(text)
    return tuple(sorted(one for one in spellings if folded(one) and folded(one) in plain))


def _invisible(char: str) -> bool:
    return char.isspace() or unicodedata.category(char) in ("Cf", "Cc", "Mn", "Me")
