"""Operations of an HTTP interface, as its OpenAPI document describes them, as tools.

Documents and answers are hostile: what is listed is callable, and nothing else.
"""

from weft.agents.openapi.options import OpenApiOptions
from weft.agents.openapi.tools import OpenApiTools

__all__ = ["OpenApiOptions", "OpenApiTools"]
