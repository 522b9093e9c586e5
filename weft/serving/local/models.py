"""The local models of one program: the same weights with the same options are loaded once."""

from __future__ import annotations

import os
from pathlib import Path

from weft.serving.local.model import LocalModel
from weft.serving.local.options import LocalOptions
from weft.serving.weights import locate


class LocalModels:
    """Makes local models and closes them together. Make one for a program and hand it around."""

    def __init__(self, *, home: Path | None = None) -> None:
        self._home = home
        self._models: dict[tuple[Path, LocalOptions], LocalModel] = {}

    def get(
        self, name_or_path: str | os.PathLike[str], options: LocalOptions | None = None
    ) -> LocalModel:
        """The one model of these weights and options.

        Raises: `ModelNotFound` with the command that fetches it.
        """
        options = options or LocalOptions()
        path = locate(name_or_path, home=self._home)
        key = (path, options)
        if key not in self._models:
            self._models[key] = LocalModel(path, options)
        return self._models[key]

    async def aclose(self) -> None:
        """Close every model. Harmless when repeated."""
        models = list(self._models.values())
        self._models.clear()
        for model in models:
            await model.aclose()
