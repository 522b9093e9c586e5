"""MkDocs hook: pages as Python-Markdown needs them, which GitHub does not.

Markers of figures, which only `evals.figures` reads, go: a comment at the beginning of a line would
end the paragraph it is in. A bar in code in a table, which GitHub wants escaped, is shown as a bar.
"""

from __future__ import annotations

import html
import re
from typing import Any, Final

_MARKERS: Final = re.compile(r"<!--(?:=|given |table )(?:(?!-->).)*-->|<!--/-->", re.DOTALL)
_CODE_WITH_BAR: Final = re.compile(r"`([^`\n]*\\\|[^`\n]*)`")
_MARKDOWN: Final = re.compile(r"[|*_\[\]{}]")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page as a reader sees it."""
    lines = _MARKERS.sub("", markdown).split("\n")
    shown = (_CODE_WITH_BAR.sub(_code, line) if line.startswith("|") else line for line in lines)
    return "\n".join(shown)


def _code(found: re.Match[str]) -> str:
    text = html.escape(found[1].replace("\\|", "|"), quote=False)
    return f"<code>{_MARKDOWN.sub(lambda sign: f'&#{ord(sign[0])};', text)}</code>"
