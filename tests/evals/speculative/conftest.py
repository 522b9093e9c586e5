from __future__ import annotations

from tests.serving.local.conftest import smollm2, tiny_path

__all__ = ["smollm2", "tiny_path"]
