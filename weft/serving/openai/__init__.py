"""A model behind any OpenAI-compatible endpoint; does not know who runs the server."""

from weft.serving.openai.metrics import ServerMetrics
from weft.serving.openai.model import OpenAIModel
from weft.serving.openai.price import Price

__all__ = ["OpenAIModel", "Price", "ServerMetrics"]
