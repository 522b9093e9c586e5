"""Which run a request is about. It stands behind the `?`: an id may hold slashes and dots."""

from __future__ import annotations

from starlette.requests import Request

from weft.core.ids import RunId
from weft.serving.ui.problem import Refused


def run_of(request: Request) -> RunId:
    """The `run` of the query. Raises: `Refused`."""
    run = request.query_params.get("run")
    if not run:
        raise Refused(400, "the request names no `run`")
    return RunId(run)
