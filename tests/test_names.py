"""Class names say what they are at the import line: unique in weft, and terms of the field."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent / "weft"
PRIVATE: Final = frozenset(
    """
    Alarm Allowance Asked Aside Audience Ballot Behind Bend Beside Care Chance Concordance Course
    Desk Door Drawn Ear Either Errand Exposed Grow Habits HeardRun Held Hold Hop Inline Journey
    JournalPeople Kind Known Law Leg Lesson Letter Letters Lexicon Life Look Looking Marks Offer
    Order Outlook Pages Past Pen Picture Plugs Purse Recall Recalled Releasing Risks Said Scene
    Seam Seen Settled Sewn Shaping Shelf Sight Speaker Speech Spelt Spoken Stage Standing Together
    Told Topic Unwinding View Watching Way Wishes Words Work Worth
    """.split()  # noqa: SIM905
)
"""Words that only weft used for what the field has names for: see docs/glossary.md."""
STORED: Final = {"Letter": "journals name the class"}
"""Old names that stay, and why."""


def classes() -> dict[str, list[str]]:
    """Where each class name of weft is defined, nested classes too."""
    found = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def test_a_class_name_occurs_once() -> None:
    assert not {name: places for name, places in classes().items() if len(places) > 1}


def test_class_names_are_terms_of_the_field() -> None:
    own = {name: places for name, places in classes().items() if name.lstrip("_") in PRIVATE}
    assert own.keys() == STORED.keys()
