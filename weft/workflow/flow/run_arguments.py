"""The keywords of flows and of their runs: inputs and settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict

from weft.agents.memory import Memory
from weft.core.errors import BuildError, InputError
from weft.core.keywords import expect
from weft.core.ports import Clock, ModelClient
from weft.core.suggestion import closest
from weft.workflow.document.inputs import plain_inputs
from weft.workflow.runtime.journals import JournalPlace
from weft.workflow.runtime.options import FlowLimits, FlowSettings

SETTINGS = frozenset(FlowSettings.__annotations__)


class FlowOptions(FlowLimits, total=False):
    """Options of a flow: its declarations, and limits of each run."""

    description: str | None
    models: Mapping[str, str | Mapping[str, object] | ModelClient] | None
    tools: Mapping[str, str | Mapping[str, object] | Callable[..., Any] | Memory] | None
    state: Mapping[str, object] | None
    folder: str | Path | None


class QueueSettings(TypedDict, total=False):
    """How a run is queued.

    key                its id; by default one that the journal does not have
    priority           higher first; then in the order of submission
    at                 not before: a time with its zone, or a delay (a number: of seconds); as text
                       such as 2026-01-05T09:00+01:00 or 10m
    queue              the queue's name, for workers of their own
    concurrency_limit  at most so many runs with the same `concurrency_key`, by default the
                       workflow's name, run at once, on all machines together
    """

    key: str | None
    priority: int
    at: str | datetime | timedelta | float | None
    queue: str
    concurrency_limit: int | None
    concurrency_key: str


class SubmitSettings(QueueSettings, FlowLimits, total=False):
    """`QueueSettings`; the journal; and limits of the run, as of `FlowSettings`."""

    journal: JournalPlace | None
    clock: Clock | None


QUEUE_SETTINGS = frozenset(QueueSettings.__annotations__)
SUBMIT_SETTINGS = frozenset(
    (*QUEUE_SETTINGS, *FlowLimits.__annotations__, *SubmitSettings.__annotations__)
)


def inputs_together(call: str, inputs: tuple[Any, ...]) -> object:
    """The inputs of a call that takes them together or by name. Raises: `BuildError`."""
    if len(inputs) > 1:
        raise BuildError(f"{call} takes one value with all inputs", hint="give them by name")
    return inputs[0] if inputs else None


def split_arguments(
    inputs: object, values: Mapping[str, Any], declared: Collection[str]
) -> tuple[dict[str, Any], Any]:
    """The inputs and the settings of a run among its keywords.

    Raises: `InputError` for a misspelt setting; `check_inputs` refuses other names.
    """
    together = plain_inputs({} if inputs is None else inputs)
    settings = {key: value for key, value in values.items() if key in SETTINGS}
    named = {key: value for key, value in values.items() if key not in SETTINGS}
    for name in named:
        near = None if name in declared else closest(name, (*declared, *SETTINGS))
        if near in SETTINGS:
            raise InputError(f"there is no input `{name}`", hint=f"did you mean `{near}`?")
    listeners = settings.get("listeners", ())
    expect(listeners, Iterable, "`listeners` is a list", "listeners=[print]")
    return {**together, **named}, settings
