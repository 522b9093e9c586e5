"""Tags in what a model wrote: numbered items, what is open, what stands outside. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from weft.reasoning.moves import Output
from weft.reasoning.parts import Parts, Tag, Text

_NUMBER: Final = re.compile(r"\s*(\d{1,3}(?:\.\d{1,3}){0,5})\s*[:.)]")
_LINE: Final = re.compile(r"^[ \t]*(\d{1,3}(?:\.\d{1,3}){0,5})[ \t]*[:.)]", re.MULTILINE)
THINK: Final = ("<think>", "</think>")
"""The tags of models that think before they answer."""


def tags_of(pairs: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """All tags of `pairs`."""
    return tuple(tag for pair in pairs for tag in pair)


def numbers(output: Output, block: str, item: str) -> tuple[str, ...]:
    """The numbers of the items in the last `block`: `<item> 1: ...`, or lines that begin so.

    In the order they were written, each once; where items are tagged, lines do not count.
    """
    inside = output.after(block)
    tagged = [
        match.group(1)
        for tag, said in pairwise(inside)
        if tag == Tag(item) and isinstance(said, str) and (match := _NUMBER.match(said))
    ]
    words = "".join(piece if isinstance(piece, str) else "\n" for piece in inside)
    return tuple(dict.fromkeys(tagged or _LINE.findall(words)))


def closers(text: str, pairs: Sequence[tuple[str, str]]) -> Parts:
    """Closing tags for the blocks of `pairs` that are open at the end of `text`, inner ones first.

    A closing tag closes what was opened inside its block too; one without a block closes nothing.
    """
    closing = dict(pairs)
    open_: list[str] = []
    for tag in re.findall("|".join(map(re.escape, tags_of(pairs))), text):
        if tag in closing:
            open_.append(closing[tag])
        elif tag in open_:
            del open_[len(open_) - 1 - open_[::-1].index(tag) :]
    return tuple(part for tag in reversed(open_) for part in (Text("\n"), Tag(tag)))


def answer_text(text: str, tags: Sequence[str]) -> str:
    """What stands behind the last block in `text`; when nothing does, what stands in it."""
    between = re.split("|".join(map(re.escape, (*tags, *THINK))), text)
    return next((part.strip() for part in reversed(between) if part.strip()), "")


def without(text: str, tags: Sequence[str]) -> str:
    """`text` without `tags`, and without blanks around it."""
    for tag in (*tags, *THINK):
        text = text.replace(tag, "")
    return text.strip()
