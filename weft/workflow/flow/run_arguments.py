"""The keywords of flows and of their runs: inputs and settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from weft.agents.memory import Memory
from weft.core.errors import BuildError, InputError
from weft.core.keywords import expect
from weft.core.ports import ModelClient
from weft.core.suggestion import closest
from weft.workflow.document.inputs import plain_inputs
from weft.workflow.runtime.options import FlowLimits, FlowSettings

SETTINGS = frozenset(FlowSettings.__annotations__)


class FlowOptions(FlowLimits, total=False):
    """Options of a flow: its declarations, and limits of each run."""

    description: str | None
    models: Mapping[str, str | Mapping[str, object] | ModelClient] | None
    tools: Mapping[str, str | Mapping[str, object] | Callable[..., Any] | Memory] | None
    folder: str | Path | None


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
