"""Model clients that a workflow can declare: one module per `use:`, imported on first use."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Final

COMPOSED: Final = frozenset(("route", "think"))
"""Kinds that are composed of other models."""
PROVIDERS: Final = ("anthropic", "gemini")
"""Kinds of hosted models, which share a module."""
KINDS: Final = COMPOSED | {"local", "openai", "vllm", *PROVIDERS}


def client_kind(use: str) -> ModuleType:
    """The module of one of `KINDS`."""
    assert use in KINDS, use
    return import_module(f"{__name__}.{'providers' if use in PROVIDERS else use}")
