"""Names, texts, secrets and schemas that others wrote, made safe to keep, show and check with.

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
