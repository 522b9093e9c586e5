"""The door to model weights for the command line, which does not see `weft.serving`."""

from __future__ import annotations

from weft.serving.weights import (
    CATALOGUE,
    CatalogueEntry,
    InstalledModel,
    Progress,
    installed,
    pull,
)

__all__ = ["CATALOGUE", "CatalogueEntry", "InstalledModel", "Progress", "installed", "pull"]
