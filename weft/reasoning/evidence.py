"""What the markers in an answer stand for, and the check that they stand for something."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_MARKER: Final = re.compile(r" ?\[ ?(\w{1,12}(?: ?[,;] ?\w{1,12}){0,20}) ?\]")
_NAME: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What `[marker]` in an answer stands for: the characters `start` to `end` of a document.

    `text` is what they spell. `document` is the document's name.
    """

    marker: str
    document: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """An answer without the markers that stand for nothing, and what the others stand for.

    `forged`: the markers that were taken out, in order, each once.
    """

    answer: str
    evidence: tuple[Evidence, ...] = ()
    forged: tuple[str, ...] = ()

    def remarks(self, known: Sequence[Evidence], listed: str) -> str:
        """What is to be said of the markers, to follow other words; `listed`: what stands in where
        an answer that could cite `known` cites nothing.
        """
        said = f"; it cited what is not there: {', '.join(self.forged)}" if self.forged else ""
        silent = known and not self.evidence
        return f"{said}; the answer cites nothing: {listed}" if silent else said


def check_markers(answer: str, known: Sequence[Evidence], like: str = r"\d+") -> CitedAnswer:
    """Take those markers out of `answer` that name nothing `known`.

    Only brackets whose names all match `like`, a regular expression, are markers: `[1]`, `[2, 5]`.
    """
    by_marker = {piece.marker: piece for piece in known}
    cited: dict[str, None] = {}
    forged: dict[str, None] = {}

    def kept(found: re.Match[str]) -> str:
        names = _NAME.findall(found[1])
        if not all(re.fullmatch(like, name) for name in names):
            return found[0]
        there = [name for name in names if name in by_marker]
        cited.update(dict.fromkeys(there))
        forged.update(dict.fromkeys(name for name in names if name not in by_marker))
        blank = " " if found[0].startswith(" ") else ""
        return blank + f"[{', '.join(there)}]" if there else ""

    text = _MARKER.sub(kept, answer)
    return CitedAnswer(text, tuple(by_marker[name] for name in cited), tuple(forged))


def without_markers(text: str) -> str:
    """`text` in which nothing reads like a marker: square brackets of words become round."""
    return _MARKER.sub(lambda found: found[0].replace("[", "(").replace("]", ")"), text)
