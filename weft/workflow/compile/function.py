"""Works that call Python: tools, plain functions, reducers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from weft.agents.tools.context import send_tool_logs
from weft.agents.tools.thread import in_thread
from weft.core.errors import NodeFailed
from weft.engine.node import Inputs, NodeContext, Work
from weft.workflow.compile.services import services_of
from weft.workflow.document.leaves import CallNode, ReduceNode, ToolNode
from weft.workflow.expressions import value_template
from weft.workflow.unit import Unit


def tool(step: ToolNode, unit: Unit) -> Work:
    """Call a tool; its log lines become the node's."""
    arguments, text = value_template(step.arguments), step.tool

    async def work(context: NodeContext, inputs: Inputs) -> Any:
        send_tool_logs(context.log)
        make = services_of(context).tools.bound(unit, text)
        return await make(arguments.render(inputs))

    return work


def call(step: CallNode, unit: Unit) -> Work:
    """Call a plain function with named arguments."""
    arguments = value_template(step.arguments)

    async def work(context: NodeContext, inputs: Inputs) -> Any:
        function = services_of(context).tools.function(unit, step.call)
        return await _call(function, (), arguments.render(inputs), step.call)

    return work


def reduce(step: ReduceNode, unit: Unit) -> Work:
    """Call a plain function with a list, and named arguments."""
    over, arguments = value_template(step.over), value_template(step.arguments)

    async def work(context: NodeContext, inputs: Inputs) -> Any:
        function = services_of(context).tools.function(unit, step.reduce)
        values = over.render(inputs)
        if not isinstance(values, Sequence) or isinstance(values, (str, bytes)):
            raise NodeFailed(
                f"a reduce needs a list, not {type(values).__name__}", hint="see `over`"
            )
        return await _call(function, (list(values),), arguments.render(inputs), step.reduce)

    return work


async def _call(
    function: Callable[..., Any], values: Sequence[Any], named: dict[str, Any], name: str
) -> Any:
    """Await an async function; run a sync one in a thread, so that it cannot hold up others."""
    if inspect.iscoroutinefunction(function):
        return await function(*values, **named)
    result = await in_thread(lambda: function(*values, **named), name.rpartition(":")[2])
    return await result if inspect.isawaitable(result) else result
