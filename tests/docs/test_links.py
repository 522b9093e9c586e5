"""Every link of the documentation leads somewhere, and every page is found from the menu."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, anchors, links, name, pages

OUTSIDE = ("https://", "http://", "mailto:")


@pytest.mark.parametrize("page", pages(), ids=name)
def test_every_link_leads_to_a_page_and_a_heading(page: Path) -> None:
    for target in links(page):
        if target.startswith(OUTSIDE):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.is_file(), f"{target}: there is no such file"
        on_site = page == ROOT / "README.md" or found.is_relative_to(DOCS)
        assert on_site, f"{target}: not on the site"
        if anchor:
            assert anchor in anchors(found), f"{target}: {name(found)} has no such heading"


def test_the_menu_has_every_page_once() -> None:
    menu = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    there = [path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md"))]
    assert sorted(menu) == sorted(there)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 180
