"""What comes from elsewhere and is not to be trusted: names, texts, schemas and values of others.

Knows no protocol: MCP servers and OpenAPI documents are read by packages of their own.
"""

from weft.agents.foreign.effects import Effects, check_effects, effect_of
from weft.agents.foreign.naming import identifier, identifiers
from weft.agents.foreign.schema import vetted
from weft.agents.foreign.secrets import Secrets
from weft.agents.foreign.text import shown

__all__ = [
    "Effects",
    "Secrets",
    "check_effects",
    "effect_of",
    "identifier",
    "identifiers",
    "shown",
    "vetted",
]
