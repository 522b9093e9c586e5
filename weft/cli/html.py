"""Parts of pages: one HTML file without scripts that asks for nothing, tables, escaped texts."""

from __future__ import annotations

import hashlib
import html
from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Final

from weft.cli.text import clean

_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}
:root{color-scheme:light dark}table{border-collapse:collapse;margin:1rem 0}
th,td{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top}
th{font-weight:600;border-bottom:1px solid #8888}td.n,th.n{text-align:right}
.failed,.worse,.lost{color:#c22}.unscored,.unfinished{color:#a70}.better,.won{color:#183}
td.t{max-width:22rem;overflow-wrap:anywhere;white-space:pre-wrap;font-size:13px}
svg{max-width:100%;height:auto}svg rect{fill:#3b7dd8}svg .b{fill:#999}
svg text{font:11px system-ui,sans-serif;fill:currentColor}svg line{stroke:#8888}
"""


def html_page(title: str, body: Iterable[str]) -> str:
    """The text of a page with `body`, which is HTML already."""
    policy = f"default-src 'none'; style-src 'sha256-{_digest(_STYLE)}'; base-uri 'none'"
    parts = "\n".join(body)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{html_text(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body>\n{parts}\n</body></html>\n"
    )


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; columns that begin with `#` are numbers, those with `~` long texts."""
    kinds = [{"#": ' class="n"', "~": ' class="t"'}.get(name[:1], "") for name in head]
    top = "".join(
        f"<th{kind}>{html_text(name.lstrip('#~'))}</th>"
        for name, kind in zip(head, kinds, strict=True)
    )
    lines = "\n".join(
        "<tr>" + "".join(_cell(*each) for each in zip(row, kinds, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>\n{lines}\n</tbody></table>"


_WORDS: Final = ("failed", "unscored", "unfinished", "better", "worse", "lost", "won")


def _cell(value: str, kind: str) -> str:
    if not kind and value in _WORDS:
        kind = f' class="{value}"'
    return f"<td{kind}>{html_text(value)}</td>"


def html_text(value: object) -> str:
    """`value` as text of a page: escaped, without control characters."""
    return html.escape(clean(str(value)))


def _digest(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode()).digest()).decode()
