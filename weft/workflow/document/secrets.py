"""The environment variables of a workflow that hold keys, and the redactors of their values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from weft.core.ports.journal import RunHeader
from weft.core.redaction import Redactor, know_secrets, named_secrets, redactor_for
from weft.workflow.document.spec.declarations import ToolUse
from weft.workflow.document.unit import Unit


def secret_names(unit: Unit) -> tuple[str, ...]:
    """The variables from which a workflow, with all that it includes, takes keys."""
    names: dict[str, None] = {}
    for included in unit.everything():
        for model in included.document.models.values():
            names.update(dict.fromkeys([model.api_key_env] if model.api_key_env else []))
        for tool in included.document.tools.values():
            names.update(dict.fromkeys(_of_tool(tool)))
    return tuple(names)


def redactor_of(unit: Unit, hidden: Iterable[str] = ()) -> Redactor:
    """The redactor of this machine's secrets, and of those `hidden` in an earlier record.

    From now on this process redacts them in all of its output.
    """
    names = secret_names(unit)
    known = know_secrets([*names, *hidden])
    return redactor_for({**_again(hidden), **named_secrets(names, known)})


def redactor_here() -> Redactor:
    """The redactor of this machine's secrets, for a run without a workflow."""
    return redactor_for(named_secrets())


def replaying_redactor(hidden: Iterable[str]) -> Redactor:
    """The redactor of exactly the secrets that a record has `hidden`."""
    return Redactor(_again(hidden))


def recorded_sources(header: RunHeader) -> dict[str, str]:
    """The source texts of a recorded workflow, with secrets restored."""
    return replaying_redactor(header.secrets).restore(dict(header.document))


def secret_mark(name: str) -> str:
    """The mark of the secret `name` in a record."""
    return f"[secret:{name}]"


def _again(hidden: Iterable[str]) -> dict[str, str]:
    # A secret that is missing here is its mark, so that restored and redacted values are equal.
    return {name: os.environ.get(name) or secret_mark(name) for name in hidden}


def _of_tool(tool: ToolUse) -> Iterator[str]:
    if tool.mcp is not None:
        yield from tool.mcp.headers_from.values()
        yield from [tool.mcp.api_key_env] if tool.mcp.api_key_env else []
    if tool.openapi is not None:
        yield from (tool.openapi.auth_env or {}).values()
    if tool.search is not None and tool.search.api_key_env:
        yield tool.search.api_key_env
