"""What is said of a record when its process ends: its effects, and how to go on with the run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from weft.cli.runs.again import again
from weft.cli.runs.effects import print_effects, unsettled_data
from weft.cli.text import clean
from weft.core.errors import StoreError
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Journal
from weft.engine.effects import UnsettledEffect
from weft.workflow.runs.story import story_of

if TYPE_CHECKING:
    from rich.console import Console


def tell_effects(console: Console, journal: Journal, run: RunId, place: str | None) -> None:
    """The calls that must not be repeated, and what is known of each. Raises: `StoreError`.

    `place`: what `--journal` said.
    """
    print_effects(console, story_of(journal, run), again(run, place))


def told_unsettled(
    journal: Journal | None, run: RunId | None, ended: Sequence[UnsettledEffect]
) -> list[dict[str, object]]:
    """The calls that a person has to judge, as the JSON document has them.

    `ended`: those that the run ended with. A record that cannot be read tells of none.
    """
    story = None
    if journal is not None and run is not None:
        with suppress(StoreError):
            story = story_of(journal, run)
    return unsettled_data(story, ended)


def tell_resume(
    console: Console, run: RunId, asking: Sequence[NodeId], place: str | None, why: str
) -> None:
    """How to go on with a run that was left, and `why`. `place`: what `--journal` said."""
    name = again(run, place)
    for node in asking:
        console.print(f"answer: weft answer {name} {clean(node)} VALUE", soft_wrap=True)
    console.print(f"{why}: resume it with `weft resume {name}`", style="bold", soft_wrap=True)
