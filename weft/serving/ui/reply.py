"""JSON answers, whatever characters are in them."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse

from weft.serving.ui.text import encodable


class Reply(JSONResponse):
    """Half of a surrogate pair, which a hostile output may hold, becomes a question mark."""

    def render(self, content: Any) -> bytes:
        return encodable(json.dumps(content, ensure_ascii=False, separators=(",", ":")))
