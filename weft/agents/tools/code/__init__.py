"""Digests of a function's source and of its dependencies in its package."""

from weft.agents.tools.code.digest import function_digest, object_digest
from weft.agents.tools.code.statements import content_digest

__all__ = ["content_digest", "function_digest", "object_digest"]
