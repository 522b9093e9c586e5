"""The state of this installation, for the command line: see `weft.serving.doctor`."""

from weft.serving.doctor import Check, examine

__all__ = ["Check", "examine"]
