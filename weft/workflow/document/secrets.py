"""Which environment variables of a workflow hold keys, and what hides their values in records."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from weft.core.ports.journal import RunHeader
from weft.core.redaction import Redactor, know_secrets, named_secrets, redactor_for
from weft.workflow.document.spec.declarations import ToolUse
from weft.workflow.document.unit import Unit


def secret_names(unit: Unit) -> tuple[str, ...]:
    """The variables that a workflow, and all that it includes, takes keys from."""
    found: dict[str, None] = {}
    for included in unit.everything():
        for model in included.document.models.values():
            found.update(dict.fromkeys([model.api_key_env] if model.api_key_env else []))
        for tool in included.document.tools.values():
            found.update(dict.fromkeys(_of_tool(tool)))
    return tuple(found)


def redactor_of(unit: Unit, hidden: Iterable[str] = ()) -> Redactor:
    """Hides the secrets of this machine, and the values of those `hidden` in an earlier record.

    From now on they are kept out of all that leaves this process.
    """
    names = secret_names(unit)
    know_secrets([*names, *hidden])
    return redactor_for({**_again(hidden), **named_secrets(names)})


def redactor_here() -> Redactor:
    """Hides the secrets of this machine, for a run without a workflow."""
    return redactor_for(named_secrets())


def replaying_redactor(hidden: Iterable[str]) -> Redactor:
    """Hides what a record has `hidden`, and nothing else: what is told apart stays so."""
    return Redactor(_again(hidden))


def recorded_sources(header: RunHeader) -> dict[str, str]:
    """What the workflow of a record was made of, as it was."""
    return replaying_redactor(header.secrets).restore(dict(header.document))


def secret_mark(name: str) -> str:
    """What a record has in the place of the secret `name`."""
    return f"[secret:{name}]"


def _again(hidden: Iterable[str]) -> dict[str, str]:
    # A secret that is not here is its mark: what a record gives back, it takes for the same.
    return {name: os.environ.get(name) or secret_mark(name) for name in hidden}


def _of_tool(tool: ToolUse) -> Iterator[str]:
    if tool.mcp is not None:
        yield from tool.mcp.headers_from.values()
        yield from [tool.mcp.api_key_env] if tool.mcp.api_key_env else []
    if tool.openapi is not None:
        yield from (tool.openapi.auth_env or {}).values()
