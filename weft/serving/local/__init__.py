"""Language models in this process, on torch and transformers, with continuous batching.

Importing this package does not import torch; the first request does.
"""

from weft.serving.local.model import LocalModel, LocalModels
from weft.serving.local.options import LocalOptions

__all__ = ["LocalModel", "LocalModels", "LocalOptions"]
