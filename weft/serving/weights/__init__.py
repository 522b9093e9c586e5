"""Model weights on this machine: a small catalogue, and fetching them once into the user's cache.

Knows files and hashes; knows nothing of running a model.
"""

from weft.serving.weights.catalogue import CATALOGUE, CatalogueEntry
from weft.serving.weights.fetching import pull
from weft.serving.weights.progress import Progress
from weft.serving.weights.shelf import InstalledModel, installed, locate
from weft.serving.weights.shipped import ShippedModel, shipped_models

__all__ = [
    "CATALOGUE",
    "CatalogueEntry",
    "InstalledModel",
    "Progress",
    "ShippedModel",
    "installed",
    "locate",
    "pull",
    "shipped_models",
]
