"""How a question from the command line is run, and where it is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.cli.session import Wishes
    from weft.core.budget import Budget
    from weft.core.events import Listener
    from weft.core.ports.journal import Journal
    from weft.workflow.question_run import AskSettings


def ask_settings(
    wishes: Wishes,
    journal: Journal | None,
    listeners: Sequence[Listener],
    budget: Budget | None = None,
) -> AskSettings:
    """The settings of one question. No `journal`: it is recorded nowhere."""
    from weft.workflow.question_run import AskSettings

    return AskSettings(
        listeners,
        wishes.concurrency,
        wishes.deadline_s,
        budget,
        journal=journal,
        durability="none" if journal is None else wishes.durability,
        run=wishes.run,
    )
