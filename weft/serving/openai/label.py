"""Tells a server that drafts which node of a program asks, so that it knows what others wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.core.ports.model import ModelRequest
from weft.serving.extra_arguments import FIELD, NODE
from weft.serving.openai.server import Server

_LONGEST = 200


def labelled(body: dict[str, Any], request: ModelRequest, server: Server) -> dict[str, Any]:
    """The body with the node's name beside what it holds of such arguments.

    Nothing is told to a server that drafts nothing, nor where no program asks.
    """
    node = request.program.node if request.program is not None else ""
    given = body.get(FIELD, {})
    if not (server.drafts and node and isinstance(given, Mapping)):
        return body
    return {**body, FIELD: {NODE: node[:_LONGEST], **given}}
