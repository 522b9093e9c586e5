"""Stars of repositories; a table stands for the service, so that the example runs anywhere."""

from __future__ import annotations

from typing import Any

import weft

_STARS = {"river": 1200, "stone": 340, "cloud": 56}


@weft.tool(effect="pure")
def fetch(repository: str) -> dict[str, Any]:
    """The number of stars of a repository."""
    return {"repository": repository, "stars": _STARS[repository]}
