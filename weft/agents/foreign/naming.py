"""Names that somebody else chose, as identifiers. Knows nothing of what they name."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

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
