"""What the brief needs besides a model: finding, reading and weighing documents."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import weft
from weft.errors import ToolRaised

HERE = Path(__file__).parent
COMMON_WORDS = """
about after also and any are because been before being both but can does each else ends every
from gets has have into its itself keeps made makes may more most must need needs never not nothing
once one only other others own same some such than that the their them then there these they this
those through time what when where which while who whole with without would your and for all was
were been his her our out use used uses using two per via how why
"""
COMMON = frozenset(COMMON_WORDS.split())


@dataclass(frozen=True)
class Document:
    """A text file, ready for a model."""

    name: str
    title: str
    text: str
    words: int


@weft.tool
def list_documents(folder: str, limit: int = 8) -> list[str]:
    """Markdown files below a folder, largest first.

    Args:
        folder: where to look, relative to this file
        limit: how many to return at most
    """
    root = (HERE / folder).resolve()
    found = sorted(root.rglob("*.md"), key=lambda path: -path.stat().st_size)
    if not found:
        raise ToolRaised(f"there are no .md files in {root}", hint="set the input `folder`")
    return [str(path) for path in found[:limit]]


@weft.tool
def read_document(path: str, max_words: int = 160) -> Document:
    """Read a Markdown file as plain text: its title, its first words, and how long it is."""
    raw = Path(path).read_text("utf-8")
    prose = re.sub(r"```.*?```", " ", raw, flags=re.DOTALL)
    title = next((line.lstrip("# ") for line in prose.splitlines() if line.startswith("#")), path)
    plain = re.sub(r"^#.*$|^\|.*\|$|^Date: .*$", " ", prose, flags=re.MULTILINE)
    plain = re.sub(r"[*`#>]|\[(.*?)\]\(.*?\)", r"\1", plain)
    words = plain.split()
    return Document(Path(path).name, title, " ".join(words[:max_words]), len(raw.split()))


@weft.tool(pure=True)
def keywords(documents: list[Document], top: int = 10) -> list[str]:
    """The words that occur in the most documents, common ones aside."""
    seen: Counter[str] = Counter()
    for document in documents:
        seen.update(set(re.findall(r"[a-z]{4,}", document.text.lower())) - COMMON)
    ranked = sorted(seen.items(), key=lambda pair: (-pair[1], pair[0]))
    return [word for word, _ in ranked[:top]]


@weft.tool(pure=True)
def reading_minutes(documents: list[Document], words_per_minute: int = 220) -> float:
    """How long a person would read."""
    return round(sum(document.words for document in documents) / words_per_minute, 1)


def most_telling(candidates: list[str], keywords: list[str]) -> str:
    """The candidate that names the most keywords; the shorter one of equals."""

    def score(candidate: str) -> tuple[int, int]:
        words = set(re.findall(r"[a-z]+", candidate.lower()))
        return -len(words & set(keywords)), len(candidate)

    return min((" ".join(text.split()).strip('"') for text in candidates), key=score)


@weft.tool
def compose(
    title: str, notes: list[str], documents: list[Document], words: list[str], minutes: float
) -> str:
    """Put the brief together as Markdown."""
    lines = [f"# {title}", "", f"{len(documents)} documents, {minutes:g} minutes to read."]
    lines += [f"Recurring words: {', '.join(words)}.", ""]
    for document, note in zip(documents, notes, strict=True):
        lines.append(f"- **{document.title}.** {note.strip().rstrip('.')}.")
    return "\n".join(lines)
