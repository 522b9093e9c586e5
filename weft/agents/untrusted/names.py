"""Sanitized names and texts, declared effects, and secrets."""

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

_WHITE_SPACE: Final = "\n\t"


def printable(text: str, limit: int, *, lines: bool = False) -> str:
    """`text` without control characters, at most `limit` characters long.

    Line breaks stay only if `lines`.
    """
    clean = "".join(c if c.isprintable() or c in _WHITE_SPACE else " " for c in text[: limit + 1])
    if not lines:
        clean = " ".join(clean.split())
    return clean if len(clean) <= limit else f"{clean[: limit - 3]}..."


_NOT_OURS: Final = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST: Final = 64  # the limit of model servers for function names
_DIGITS: Final = 6


def identifier(name: str, *, longest: int = _LONGEST) -> str:
    """`name` in ASCII letters, digits and _, no digit first: `read-file` is `read_file`.

    A name that is too long is truncated and ends in a digest.
    """
    spelled = _NOT_OURS.sub("_", name).strip("_") or "tool"
    spelled = f"_{spelled}" if spelled[0].isdigit() else spelled
    return spelled if len(spelled) <= longest else _disambiguate(spelled, name, longest)


def identifiers(names: Iterable[str], prefix: str = "") -> dict[str, str]:
    """The identifier of each name, all different, in the order of `names`.

    Where several names have one identifier, the name that equals it keeps it and the others end in
    a digest of their own: no identifier depends on the order of the names.
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
            else _disambiguate(spelled, name, longest)
        )
        for name, spelled in plain.items()
    }


def _disambiguate(spelled: str, name: str, longest: int) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{spelled[: longest - _DIGITS - 1]}_{digest}"


Effects = Mapping[str, Effect]
"""Effects by the names of tools, or their identifiers; under "" that of all others."""


def effect_of(effects: Effects, name: str, otherwise: Effect) -> Effect:
    """The effect of the tool `name` in `effects`, or else `otherwise`."""
    for key in (name, identifier(name), ""):
        if key in effects:
            return effects[key]
    return otherwise


def check_effects(effects: Effects, names: Iterable[str]) -> None:
    """Raises: `BuildError` for an effect of an unknown tool."""
    known = {spelled for name in names for spelled in (name, identifier(name))}
    for name in effects:
        if name and name not in known:
            hint = suggestion(name, sorted(known))
            raise BuildError(f"`effect` speaks of {name!r}, which is no tool of it", hint=hint)


_SHORTEST: Final = 4  # replacing a shorter value would make texts unreadable


class Secrets:
    """The values of the environment variables `names`, read once.

    Raises: `BuildError` for the first variable that is not set.
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
