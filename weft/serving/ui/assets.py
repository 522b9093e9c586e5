"""The page's own files. They hold nothing of any run, so they need no key."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from weft.serving.ui.problem import Refused

_TYPES: Final = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "mjs": "text/javascript",
    "svg": "image/svg+xml",
}


class Assets:
    """Serves what was in the package when it started, and nothing else of the disk."""

    def __init__(self) -> None:
        self._files = dict(_served(files("weft.serving.ui") / "assets", ""))

    async def file(self, request: Request) -> Response:
        """The file of the path; the page itself for `/`."""
        name = request.path_params.get("name") or "index.html"
        content = self._files.get(name)
        if content is None:
            raise Refused(404, "there is no such page")
        return Response(content, media_type=_TYPES[name.rpartition(".")[2]])


def _served(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        name = prefix + entry.name
        if entry.is_dir():
            yield from _served(entry, f"{name}/")
        elif name.rpartition(".")[2] in _TYPES:
            yield name, entry.read_bytes()
