"""What a workflow says of the effects of somebody else's tools. Knows no protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weft.agents.foreign.naming import identifier
from weft.core.errors import BuildError
from weft.core.values import Effect

Effects = Mapping[str, Effect]
"""Effects by the names of tools, or identifiers of them; under "" that of all others."""


def effect_of(effects: Effects, name: str, otherwise: Effect) -> Effect:
    """The effect of the tool `name`: what `effects` say, else what is known of it otherwise."""
    for said in (name, identifier(name), ""):
        if said in effects:
            return effects[said]
    return otherwise


def check_effects(effects: Effects, names: Iterable[str]) -> None:
    """Raises: `BuildError` for an effect of a tool that there is not."""
    known = {spelled for name in names for spelled in (name, identifier(name))}
    for name in effects:
        if name and name not in known:
            hint = f"there are: {', '.join(sorted(known)) or 'none'}"
            raise BuildError(f"`effect` speaks of {name!r}, which is no tool of it", hint=hint)
