"""A model behind any OpenAI-compatible endpoint; does not know who runs the server."""

from weft.serving.openai.endpoint import Price
from weft.serving.openai.model import OpenAIModel
from weft.serving.openai.server import ServerMetrics

__all__ = ["OpenAIModel", "Price", "ServerMetrics"]
