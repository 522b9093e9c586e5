"""Sanitizes names, texts, secrets and schemas from untrusted sources.

Servers and documents are read by `weft.agents.mcp` and `weft.agents.openapi`.
"""

from weft.agents.untrusted.names import (
    Effects,
    Secrets,
    check_effects,
    effect_of,
    identifier,
    identifiers,
    printable,
)
from weft.agents.untrusted.schema import vet_schema

__all__ = [
    "Effects",
    "Secrets",
    "check_effects",
    "effect_of",
    "identifier",
    "identifiers",
    "printable",
    "vet_schema",
]
