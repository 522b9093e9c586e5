"""JSON answers and downloads, whatever characters are in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from starlette.responses import JSONResponse, StreamingResponse

from weft.serving.ui.text import encodable, pieces

_BATCH_CHARS: Final = 1 << 18
_UNNAMEABLE: Final = re.compile(r"[^A-Za-z0-9._-]+")


class Reply(JSONResponse):
    """Half of a surrogate pair, which a hostile output may hold, becomes a question mark."""

    def render(self, content: Any) -> bytes:
        return encodable(json.dumps(content, ensure_ascii=False, separators=(",", ":")))


def download(value: object, name: str) -> StreamingResponse:
    """A value of any kind in full, as a file of plain text."""
    named = _UNNAMEABLE.sub("-", name)[:120]
    return StreamingResponse(
        _batches(value),
        media_type="text/plain; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="{named}.txt"'},
    )


def _batches(value: object) -> Iterator[bytes]:
    """The text in pieces of a size that is worth sending."""
    waiting: list[str] = []
    length = 0
    for piece in pieces(value):
        waiting.append(piece)
        length += len(piece)
        if length >= _BATCH_CHARS:
            yield encodable("".join(waiting))
            waiting, length = [], 0
    yield encodable("".join(waiting))
