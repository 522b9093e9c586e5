"""The page's files: all there, nothing from elsewhere, libraries as their list says."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from tests.serving.ui.ui_server import House, house

ASSETS = Path(str(files("weft.serving.ui") / "assets"))
SCRIPTS = sorted(ASSETS.rglob("*.js")) + sorted(ASSETS.rglob("*.mjs"))
_IMPORT = re.compile(r"""(?:from|import)\s*["']([^"']+)["']""")


@pytest.fixture(scope="module")
def here() -> Iterator[House]:
    with house() as found:
        yield found


def test_all_files_of_the_page_are_served_with_their_types(here: House) -> None:
    types = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
    served = 0
    for path in ASSETS.rglob("*"):
        if path.suffix in types:
            response = here.stranger.get(f"/{path.relative_to(ASSETS).as_posix()}")
            assert response.content == path.read_bytes()
            assert response.headers["content-type"].startswith(types[path.suffix])
            served += 1
    assert served > 40
    assert here.stranger.get("/").content == (ASSETS / "index.html").read_bytes()


@pytest.mark.parametrize(
    "path",
    ["/vendor/THIRD_PARTY.md", "/../server.py", "/%2e%2e/server.py", "/style", "/etc/passwd"],
)
def test_nothing_else_is_served(here: House, path: str) -> None:
    assert here.stranger.get(path).status_code == 404


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ASSETS)))
def test_scripts_import_files_that_are_there(path: Path) -> None:
    for name in _IMPORT.findall(path.read_text("utf-8")):
        assert name.startswith("."), name
        assert (path.parent / name).is_file(), name


def test_the_page_neither_names_other_servers_nor_makes_markup_of_text() -> None:
    own = [path for path in ASSETS.rglob("*") if path.is_file() and "vendor" not in path.parts]
    assert own
    for path in own:
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//cdn|url\(", text), path
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", text), path
        assert not re.search(r"dangerouslySet|\beval\b|new Function|javascript:", text), path


def test_libraries_are_those_of_their_list() -> None:
    listed = (ASSETS / "vendor" / "THIRD_PARTY.md").read_text("utf-8")
    vendored = sorted((ASSETS / "vendor").glob("*.mjs"))
    assert len(vendored) == 4
    for path in vendored:
        row = next(line for line in listed.splitlines() if line.startswith(f"| {path.name} "))
        assert hashlib.sha256(path.read_bytes()).hexdigest() in row
    assert {path.stem for path in (ASSETS / "vendor" / "licences").iterdir()} == {
        "preact",
        "htm",
        "dagre",
    }
