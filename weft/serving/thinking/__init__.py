"""Bounds the thought before a model's answer, where its tokens can be read and written."""

from weft.serving.thinking.budget import think_within

__all__ = ["think_within"]
