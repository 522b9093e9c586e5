"""Operations of an HTTP API as tools, from its OpenAPI document.

Documents and answers are untrusted: only the listed operations can be called.
"""

from weft.agents.openapi.options import OpenApiOptions
from weft.agents.openapi.tools import OpenApiTools

__all__ = ["OpenApiOptions", "OpenApiTools"]
