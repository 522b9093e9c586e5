"""Journals that wait long for each other: a process may stand still in the middle of a write."""

from __future__ import annotations

from weft.durability.journal.sqlite import tables

PATIENCE_S = 120.0


def be_patient() -> None:
    """For a process of its own; a test patches `BUSY_S` for itself, and for what it forks."""
    tables.BUSY_S = PATIENCE_S  # type: ignore[misc]
