"""Node functions of tools, plain functions and reducers, and of warming a prompt prefix."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.agents.tools.context import send_tool_logs
from weft.agents.tools.threads import in_thread
from weft.core.errors import NodeFailed
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest, Sampling, Warmable
from weft.core.values import Message
from weft.engine.graph.node import Inputs, Node, NodeContext, NodeFn, Policy, Skip
from weft.workflow.compile.policy import NameBindings
from weft.workflow.compile.services import services_of
from weft.workflow.document.expressions import Template, template, value_template
from weft.workflow.document.python_types import function_types
from weft.workflow.document.spec.nodes import CallNode, ModelNode, ReduceNode, ToolNode
from weft.workflow.document.unit import Unit


def tool(step: ToolNode, unit: Unit, on: str | None = None) -> NodeFn:
    """Call a tool; its log lines become those of the node. `on`: see `Toolset.place`."""
    arguments, text = value_template(step.arguments), step.tool
    if step.approve is not None:
        return _approved(step, unit, on)

    async def node_fn(context: NodeContext, inputs: Inputs) -> Any:
        send_tool_logs(context.log)
        make = services_of(context).tools.bound(unit, text, on)
        return await make(arguments.render(inputs))

    return node_fn


def _approved(step: ToolNode, unit: Unit, on: str | None) -> NodeFn:
    """Call a tool by the node's own rule for approvals."""
    arguments, rule = value_template(step.arguments), value_template(step.approve)

    async def node_fn(context: NodeContext, inputs: Inputs) -> Any:
        send_tool_logs(context.log)
        given, approve = arguments.render(inputs), bool(rule.render(inputs))
        return await services_of(context).tools.call_with(unit, step.tool, given, approve, on)

    return node_fn


def call(step: CallNode, unit: Unit) -> NodeFn:
    """Call a plain function with named arguments."""
    arguments, kinds = value_template(step.arguments), unit.types.arguments.get(id(step))

    async def node_fn(context: NodeContext, inputs: Inputs) -> Any:
        function = services_of(context).tools.function(unit, step.call)
        return await call_function(function, (), arguments.render(inputs), step.call, kinds)

    return node_fn


def reduce(step: ReduceNode, unit: Unit) -> NodeFn:
    """Call a plain function with a list, and named arguments."""
    over, arguments = value_template(step.over), value_template(step.arguments)
    kinds = unit.types.arguments.get(id(step))

    async def node_fn(context: NodeContext, inputs: Inputs) -> Any:
        function = services_of(context).tools.function(unit, step.reduce)
        values = over.render(inputs)
        if not isinstance(values, Sequence) or isinstance(values, (str, bytes)):
            raise NodeFailed(
                f"a reduce needs a list, not {type(values).__name__}", hint="see `over`"
            )
        named = arguments.render(inputs)
        return await call_function(function, (list(values),), named, step.reduce, kinds)

    return node_fn


async def call_function(
    function: Callable[..., Any],
    values: Sequence[Any],
    named: dict[str, Any],
    name: str,
    kinds: Mapping[str, Any] | None = None,
) -> Any:
    """Await an async function; run a sync one in a thread, so that it does not block the loop.

    Arguments are instances of the function's annotations, and of `kinds` where it has none; the
    result is plain data where a model or a dataclass is returned.
    """
    types = function_types(function)
    if kinds or types.parameters:
        values = types.values(named, kinds, values)
    if inspect.iscoroutinefunction(function):
        return types.returned(await function(*values, **named), name)
    result = await in_thread(lambda: function(*values, **named), name.rpartition(":")[2])
    return types.returned(await result if inspect.isawaitable(result) else result, name)


def warming(node: NodeId, step: ModelNode, names: NameBindings, unit: Unit) -> Node | None:
    """A node that warms the prompt prefix of the model node `node`; None if no prefix is early.

    It waits for the names in the system text, and for those in the prompt before the last node's,
    and never fails the run.
    """
    system = template(step.system or "")
    prompt = template(step.prompt)
    late = _last(system, prompt, step, names)
    if late is None:
        return None
    if late in system.names:
        return None  # the chat template begins with the whole system text
    prefix = prompt.before(late)
    used = sorted(prefix.names | system.names)

    async def node_fn(context: NodeContext, inputs: Inputs) -> Skip | None:
        client = services_of(context).models.client(unit, step.model)
        messages = [Message("user", prefix.text_for(inputs))]
        if step.system is not None:
            messages.insert(0, Message("system", system.text_for(inputs)))
        if not isinstance(client, Warmable):
            return Skip(f"{client.model} cannot be warmed")
        await client.warm(
            ModelRequest(tuple(messages), sampling=Sampling(max_tokens=1), program=context.program)
        )
        return None

    return Node(
        NodeId(f"{node}.warm"),
        node_fn,
        names.edges(used),
        names.given(used),
        policy=Policy(default=None, weight=step.weight / 10),
        kind="warm",
    )


def _last(system: Template, prompt: Template, step: ModelNode, names: NameBindings) -> str | None:
    """The first argument's name, or that of the last node: the prompt's prefix ends before it."""
    mentioned = [reference.name for reference in (*system.references, *prompt.references)]
    arguments = [name for name in mentioned if name in step.arguments]
    if arguments:
        return arguments[0]
    sources = list(dict.fromkeys(name for name in mentioned if names.is_node(name)))
    return sources[-1] if sources else None
