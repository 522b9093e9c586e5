"""Names of others as identifiers, their texts as printable ones, declared effects, and secrets."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from weft.core.errors import BuildError
from weft.core.suggestion import suggestion
from weft.core.values import Effect

_KEPT: Final = "\n\t"


def printable(text: str, limit: int, *, lines: bool = False) -> str:
    """`text` without control characters, at most `limit` characters long.

    Line breaks stay only where `lines` asks for them.
    """
    clean = "".join(c if c.isprintable() or c in _KEPT else " " for c in text[: limit + 1])
    if not lines:
        clean = " ".join(clean.split())
    return clean if len(clean) <= limit else f"{clean[: limit - 3]}..."


_NOT_OURS: Final = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST: Final = 64  # what servers of models take as the name of a function
_DIGITS: Final = 6


def identifier(name: str, *, longest: int = _LONGEST) -> str:
    """`name` in ASCII letters, digits and _, no digit first: `read-file` is `read_file`.

    One that is too long ends in a digest of the whole.
    """
    spelled = _NOT_OURS.sub("_", name).strip("_") or "tool"
    spelled = f"_{spelled}" if spelled[0].isdigit() else spelled
    return spelled if len(spelled) <= longest else _told_apart(spelled, name, longest)


def identifiers(names: Iterable[str], prefix: str = "") -> dict[str, str]:
    """The identifier of each name, all different, in the order of `names`.

    Where several names come to one identifier, one that is spelled so keeps it and the others end
    in a digest of their own spelling: no name depends on the order in which they came.
    """
    names = list(dict.fromkeys(names))
    longest = _LONGEST - len(prefix)
    plain = {name: identifier(name, longest=longest) for name in names}
    taken = Counter(plain.values())
    return {
        name: prefix
        + (
            spelled
            if taken[spelled] == 1 or spelled == name
            else _told_apart(spelled, name, longest)
        )
        for name, spelled in plain.items()
    }


def _told_apart(spelled: str, name: str, longest: int) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{spelled[: longest - _DIGITS - 1]}_{digest}"


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
            hint = suggestion(name, sorted(known))
            raise BuildError(f"`effect` speaks of {name!r}, which is no tool of it", hint=hint)


_SHORTEST: Final = 4  # a shorter value would blot out half of every text


class Secrets:
    """The values of `names`, read once.

    Raises: `BuildError` that names the first variable that is not set.
    """

    def __init__(self, names: Iterable[str], environment: Mapping[str, str] = os.environ) -> None:
        self._values: dict[str, str] = {}
        for name in names:
            value = environment.get(name)
            if not value:
                raise BuildError(
                    f"the environment variable {name} is not set",
                    hint=f"set it before the run: export {name}=...",
                )
            self._values[name] = value

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self._values)})"

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def hidden(self, text: str) -> str:
        """`text` with every value replaced by the name of its variable."""
        for name, value in self._values.items():
            for secret in (value, value.removeprefix("Bearer ")):
                if len(secret) >= _SHORTEST:
                    text = text.replace(secret, f"${name}")
        return text
