"""Files, modules and names of the code that the documentation mentions are there."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import DOCS, ROOT, name, pages

_PATH: Final = re.compile(r"\b(?:weft|tests|evals|examples|scripts)/[\w./-]*[\w/]")
_DOTTED: Final = re.compile(r"\bweft\.[a-z_]\w*(?:\.\w+)+")
WRITTEN: Final = [page for page in pages() if page.parent != DOCS / "reference"]


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_every_path_is_there(page: Path) -> None:
    text = re.sub(r"<!--.*?-->", "", page.read_text("utf-8"), flags=re.DOTALL)
    for path in set(_PATH.findall(text)) - {"weft/run"}:  # a key of MCP results
        assert any((ROOT / f"{path}{end}").exists() for end in ("", ".py")), path


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_every_name_is_there(page: Path) -> None:
    text = re.sub(r"<!--.*?-->", "", page.read_text("utf-8"), flags=re.DOTALL)
    for dotted in set(_DOTTED.findall(text)):
        if not re.search(r"\.(?:schema\.json|run|node|status|via|recalled|effect)\b", dotted):
            assert _exists(dotted), dotted


CODE: Final = ("weft", "evals", "tests")
_CLASS: Final = re.compile(r"(?<![\w.-])[A-Z][a-z]+(?:[A-Z][a-z0-9]+)+\b")


@pytest.fixture(scope="module")
def identifiers() -> frozenset[str]:
    """Every word of the code that may be a class."""
    found: set[str] = set()
    for folder in CODE:
        for path in (ROOT / folder).rglob("*.py"):
            found.update(_CLASS.findall(path.read_text("utf-8")))
    return frozenset(found)


@pytest.mark.parametrize("page", [page for page in WRITTEN if page.parent.name != "adr"], ids=name)
def test_every_class_is_there(page: Path, identifiers: frozenset[str]) -> None:
    """Decisions may name what was there on their day."""
    text = re.sub(
        r"<!--.*?-->|^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    for code in re.findall(r"`([^`\n]+)`", text):
        assert set(_CLASS.findall(code)) <= identifiers, code


def _exists(dotted: str) -> bool:
    """Whether it is a module, or a name in one (perhaps a method of a class)."""
    words = dotted.split(".")
    for size in range(len(words), 0, -1):
        try:
            found = import_module(".".join(words[:size]))
        except ModuleNotFoundError:
            continue
        for word in words[size:]:
            found = getattr(found, word, None)
        return found is not None
    return False
