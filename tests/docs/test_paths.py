"""Files, modules and names of the code that the documentation mentions are there."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("torch", reason="some of what pages name needs the `local` extra")

from tests.docs.pages import DOCS, ROOT, blocks, name, pages

_PATH: Final = re.compile(r"\b(?:weft|tests|evals|examples|scripts)/[\w./-]*[\w/]")
_DOTTED: Final = re.compile(r"\bweft\.[a-z_]\w*(?:\.\w+)+")
MCP_KEYS: Final = {"weft/run", "weft/questions"}
"""Keys of results of `weft mcp`."""
WRITTEN: Final = [page for page in pages() if page.parent != DOCS / "reference"]


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_every_path_is_there(page: Path) -> None:
    text = re.sub(r"<!--.*?-->", "", page.read_text("utf-8"), flags=re.DOTALL)
    for path in set(_PATH.findall(text)) - MCP_KEYS:
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


def _imports() -> Iterator[tuple[str, str, str]]:
    for page in WRITTEN:
        for block in blocks(page):
            tree = ast.parse(_parsable(block.text)) if block.language == "python" else None
            for node in ast.walk(tree) if tree else ():
                if isinstance(node, ast.ImportFrom) and str(node.module).startswith("weft"):
                    yield from ((name(page), str(node.module), each.name) for each in node.names)


def _parsable(text: str) -> str:
    """A block of code that may await, return or leave out a body outside of a function."""
    return f"async def block():\n{textwrap.indent(text, '    ')}\n    ..."


@pytest.mark.parametrize(("page", "module", "imported"), sorted(set(_imports())))
def test_what_a_page_imports_is_there(page: str, module: str, imported: str) -> None:
    assert hasattr(import_module(module), imported) or _exists(f"{module}.{imported}")


PUBLIC: Final = frozenset({"weft", "weft.errors", "weft.events", "weft.serve", "weft.testing"})


def _example_imports() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "examples").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                yield name(path), str(node.module)
            elif isinstance(node, ast.Import):
                yield from ((name(path), each.name) for each in node.names)


def test_pages_and_examples_import_public_modules_only() -> None:
    used = [*((page, module) for page, module, _ in _imports()), *_example_imports()]
    deep = [one for one in used if one[1].partition(".")[0] == "weft" and one[1] not in PUBLIC]
    assert len(used) > 20
    assert not deep
