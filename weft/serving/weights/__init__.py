"""Model weights on this machine: a small catalogue, and fetching them into the user's cache.

Handles files and hashes; runs no model.
"""

from weft.serving.weights.catalogue import CATALOGUE, CatalogueEntry, PullProgress
from weft.serving.weights.fetch import pull
from weft.serving.weights.model_folder import (
    InstalledModel,
    ShippedModel,
    installed,
    known_models,
    locate,
    missing_weights,
    shipped_models,
)

__all__ = [
    "CATALOGUE",
    "CatalogueEntry",
    "InstalledModel",
    "PullProgress",
    "ShippedModel",
    "installed",
    "known_models",
    "locate",
    "missing_weights",
    "pull",
    "shipped_models",
]
