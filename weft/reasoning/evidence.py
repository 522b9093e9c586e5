"""Evidence for the markers in an answer, and the check that each marker has some."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_MARKER: Final = re.compile(r" ?\[ ?(\w{1,12}(?: ?[,;] ?\w{1,12}){0,20}) ?\]")
_NAME: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The source of `[marker]` in an answer: `text`, the characters `start` to `end` of a document.

    `document` is the document's name.
    """

    marker: str
    document: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """An answer without forged markers, and the evidence for the others.

    `forged`: the markers that were removed, in order, each once.
    """

    answer: str
    evidence: tuple[Evidence, ...] = ()
    forged: tuple[str, ...] = ()

    def remarks(self, known: Sequence[Evidence], listed: str) -> str:
        """A note on the markers, to append to a reason.

        `listed` describes the evidence given for an answer that could cite `known` and does not.
        """
        remark = f"; it cited what is not there: {', '.join(self.forged)}" if self.forged else ""
        uncited = known and not self.evidence
        return f"{remark}; the answer cites nothing: {listed}" if uncited else remark


def check_markers(answer: str, known: Sequence[Evidence], like: str = r"\d+") -> CitedAnswer:
    """Remove the markers of `answer` that name nothing in `known`.

    Only brackets whose names all match `like`, a regular expression, are markers: `[1]`, `[2, 5]`.
    """
    by_marker = {piece.marker: piece for piece in known}
    cited: dict[str, None] = {}
    forged: dict[str, None] = {}

    def checked(match: re.Match[str]) -> str:
        names = _NAME.findall(match[1])
        if not all(re.fullmatch(like, name) for name in names):
            return match[0]
        cited_here = [name for name in names if name in by_marker]
        cited.update(dict.fromkeys(cited_here))
        forged.update(dict.fromkeys(name for name in names if name not in by_marker))
        blank = " " if match[0].startswith(" ") else ""
        return blank + f"[{', '.join(cited_here)}]" if cited_here else ""

    text = _MARKER.sub(checked, answer)
    return CitedAnswer(text, tuple(by_marker[name] for name in cited), tuple(forged))


def without_markers(text: str) -> str:
    """`text` without anything that reads like a marker: square brackets of words become round."""
    return _MARKER.sub(lambda match: match[0].replace("[", "(").replace("]", ")"), text)
