"""Clients of hosted APIs, through the vendors' own libraries (the extra `providers`)."""

from weft.serving.providers.anthropic.model import AnthropicModel
from weft.serving.providers.gemini.model import GeminiModel
from weft.serving.providers.options import ProviderOptions

__all__ = ["AnthropicModel", "GeminiModel", "ProviderOptions"]
