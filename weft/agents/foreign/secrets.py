"""Values of environment variables that are named in files and never written anywhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

from weft.core.errors import BuildError

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
