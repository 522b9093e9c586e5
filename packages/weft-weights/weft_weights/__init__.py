"""Trained weights for weft, as folders of data. Imports nothing and runs nothing."""

from pathlib import Path
from typing import Literal

__all__ = ["Kind", "folder"]

Kind = Literal["diffusion", "planner", "speculative"]


def folder(kind: Kind) -> Path:
    """The folder with one subfolder for each model or drafter of that kind."""
    return Path(__file__).parent / kind
