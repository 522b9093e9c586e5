"""Model weights on this machine: a small catalogue, and fetching them once into the user's cache.

Knows files and hashes; knows nothing of running a model.
"""

from weft.serving.weights.catalogue import CATALOGUE, CatalogueEntry, PullProgress
from weft.serving.weights.fetch import pull
from weft.serving.weights.model_folder import (
    InstalledModel,
    ShippedModel,
    installed,
    locate,
    shipped_models,
)

__all__ = [
    "CATALOGUE",
    "CatalogueEntry",
    "InstalledModel",
    "PullProgress",
    "ShippedModel",
    "installed",
    "locate",
    "pull",
    "shipped_models",
]
