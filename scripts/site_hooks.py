"""MkDocs hook: pages without the markers of figures, which only `evals.figures` reads.

A comment at the beginning of a line would also end the paragraph it stands in.
"""

from __future__ import annotations

import re
from typing import Any, Final

_MARKERS: Final = re.compile(r"<!--(?:=|given |table )(?:(?!-->).)*-->|<!--/-->", re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page as a reader sees it."""
    return without_markers(markdown)


def without_markers(markdown: str) -> str:
    """A text without the markers of its figures; the figures stay."""
    return _MARKERS.sub("", markdown)
