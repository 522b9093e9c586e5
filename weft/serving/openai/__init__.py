"""Client for a model behind any OpenAI-compatible endpoint."""

from weft.serving.openai.endpoint import Price
from weft.serving.openai.model import OpenAIModel
from weft.serving.openai.server import ServerMetrics

__all__ = ["OpenAIModel", "Price", "ServerMetrics"]
