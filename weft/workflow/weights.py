"""Model weights, for the command line: see `weft.serving.weights`."""

from weft.serving.weights import (
    CATALOGUE,
    CatalogueEntry,
    InstalledModel,
    ShippedModel,
    installed,
    pull,
    shipped_models,
)

__all__ = [
    "CATALOGUE",
    "CatalogueEntry",
    "InstalledModel",
    "ShippedModel",
    "installed",
    "pull",
    "shipped_models",
]
