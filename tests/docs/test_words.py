"""The documentation speaks the words of the field: no private name, and no private idiom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import DOCS, name, pages, prose

IDIOMS: Final = """
purse|stranger|errands?|unfold(?:s|ing)?|unwind(?:s|ing)?|stand-ins?|stands? in for|the house
|whoever|gone on with|goes on with|go on with|going on with|comes? of it|what becomes of
|mend(?:s|ed|ing)?|border|engine works?|works that
"""
NAMES: Final = """
Grow|Recall|Recalled|Unwinding|Outlook|Allowance|Said|Speech|Speaker|Errand|Journey|Hop|Shaping
|Plugs|Looking|Spelt|Lexicon|Lesson|Course|Seen|Watching|Settled|Beside|Desk|Leg|Seam|Sewn|Door
|Exposed|Ear|Shelf|Concordance|Letters|Wishes|HeardRun|Alarm|Audience|Ballot|Marks|Scene|Risks
|Habits|Releasing|Picture|Pen|Bend|Teacher|Topic|Work
"""
_IDIOM: Final = re.compile(rf"\b(?:{''.join(IDIOMS.split(chr(10)))})\b", re.IGNORECASE)
_NAME: Final = re.compile(rf"`(?:{''.join(NAMES.split())})(?:\(.*\))?`")
_ROW: Final = re.compile(r"^\| +\|.*$", re.MULTILINE)
"""A row of the table of strategies, which is made from the registry."""

MADE: Final = DOCS / "reference"
"""Made from the code, whose words are held where they are written."""


@pytest.mark.parametrize("page", [page for page in pages() if page.parent != MADE], ids=name)
def test_no_private_word(page: Path) -> None:
    text = _ROW.sub("", prose(page)) if page.name == "reasoning.md" else prose(page)
    found = [*_IDIOM.findall(text), *_NAME.findall(page.read_text("utf-8"))]
    assert not found


TERM: Final = re.compile(r"^\| (\*\*.+?) \| (.+) \|$", re.MULTILINE)


def test_a_term_has_one_sentence_and_one_place() -> None:
    terms = TERM.findall((DOCS / "glossary.md").read_text("utf-8"))
    assert len(terms) > 70
    assert len({term for term, _ in terms}) == len(terms)
    for term, meaning in terms:
        assert meaning.endswith("."), term
        assert not re.search(r"[.!?] [A-Z]", meaning), f"{term}: more than one sentence"
