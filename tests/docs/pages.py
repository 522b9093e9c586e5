"""The pages of the documentation: their headings, links and code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
_FENCE: Final = re.compile(
    r"^(?P<marks>`{3,})(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=marks)[ \t]*$", re.DOTALL | re.MULTILINE
)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_SPAN: Final = re.compile(r"`[^`\n]+`")
_LINK: Final = re.compile(r"(?<!\\)\[(?:[^\[\]]|\[[^\]]*\])*\]\((?P<target>[^)\s]+)\)")
_HEADING: Final = re.compile(r"^#{1,6} (?P<text>.+?)\s*$", re.MULTILINE)
_NOT_IN_SLUGS: Final = re.compile(r"[^\w\- ]")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title, its text, and the comment on the line before it."""

    language: str
    title: str
    text: str
    note: str
    line: int


def pages() -> list[Path]:
    """README.md and every page of docs/."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def name(path: Path) -> str:
    """A page's path in the repository."""
    return path.relative_to(ROOT).as_posix()


def blocks(path: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    text = path.read_text("utf-8")
    for found in _FENCE.finditer(text):
        language, _, rest = found["info"].strip().partition(" ")
        title = re.search(r'title="([^"]+)"', rest)
        before = text[: found.start()].rstrip("\n").rpartition("\n")[2]
        note = re.fullmatch(r"<!-- (.*) -->", before)
        yield Block(
            language,
            title[1] if title else "",
            found["text"],
            note[1] if note else "",
            text.count("\n", 0, found.start()) + 1,
        )


def prose(path: Path) -> str:
    """A page without code and comments."""
    return _SPAN.sub("", _COMMENT.sub("", _FENCE.sub("", path.read_text("utf-8"))))


def links(path: Path) -> Iterator[str]:
    """Where the links and pictures of a page lead."""
    text = _SPAN.sub("``", _COMMENT.sub("", _FENCE.sub("", path.read_text("utf-8"))))
    return (found["target"] for found in _LINK.finditer(text))


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    found: set[str] = set()
    text = _COMMENT.sub("", _FENCE.sub("", path.read_text("utf-8")))
    for heading in _HEADING.finditer(text):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading["text"]).replace("`", "")
        slug = _NOT_IN_SLUGS.sub("", shown.lower()).strip().replace(" ", "-")
        number, unique = 0, slug
        while unique in found:
            number += 1
            unique = f"{slug}_{number}"
        found.add(unique)
    return found
