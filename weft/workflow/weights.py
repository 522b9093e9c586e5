"""Model weights, for the command line: see `weft.serving.weights`."""

from weft.serving.weights import CATALOGUE, CatalogueEntry, InstalledModel, installed, pull

__all__ = ["CATALOGUE", "CatalogueEntry", "InstalledModel", "installed", "pull"]
