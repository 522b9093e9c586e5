"""That a workflow can be run here: its tools, types, models, servers and limits. Runs nothing."""

from __future__ import annotations

from collections.abc import Mapping

from weft.agents.tools import tool_logs
from weft.core.errors import BuildError, ToolError
from weft.core.ports import ModelClient
from weft.workflow.compiled import CheckedFlow, checked
from weft.workflow.imports import build_error
from weft.workflow.models import ModelSource, check_models
from weft.workflow.sources import check_source, sources_in
from weft.workflow.toolset import Toolset
from weft.workflow.unit import Unit


def check_unit(
    unit: Unit, tools: Toolset, models: Mapping[str, ModelClient] | ModelSource | None = None
) -> CheckedFlow:
    """Import the tools of `unit` and check types, models and limits. Raises: `BuildError`.

    What a given source of models makes of declarations is not checked. Models and servers depend on
    this process and its environment, and are checked every time; the rest where it has changed.
    """
    for included in unit.everything():
        for name in sources_in(included):
            if not tools.replaces(name):
                check_source(included, name)
        if models is None or isinstance(models, Mapping):
            check_models(included, models or ())
    return checked(unit, tools)


async def check_connected(unit: Unit) -> tuple[str, ...]:
    """Like `check_unit`, with the tools that servers really offer: starts and ends them.

    Returns what there is to say of servers, such as tools that cannot be used.

    Raises: `BuildError`.
    """
    tools = Toolset()
    notes: list[str] = []
    try:
        for included in unit.everything():
            for name in sources_in(included):
                try:
                    with tool_logs(notes.append):
                        await tools.start(included, name)
                except (ToolError, BuildError) as error:
                    origin = included.document.tools[name].origin
                    included.fail(build_error(error), ("tools", name, origin), at_key=True)
        check_unit(unit, tools)
    finally:
        await tools.aclose()
    return tuple(notes)
