"""Works that have the known beginning of a prompt computed while its last part is still to come."""

from __future__ import annotations

from weft.core.ids import NodeId
from weft.core.ports import ModelRequest, Sampling, Warmable
from weft.core.values import Message
from weft.engine.node import Inputs, Node, NodeContext, Policy, Skip
from weft.workflow.compile.names import Names
from weft.workflow.compile.services import services_of
from weft.workflow.document.leaves import ModelNode
from weft.workflow.expressions import Template, template
from weft.workflow.unit import Unit


def warming(node: NodeId, step: ModelNode, names: Names, unit: Unit) -> Node | None:
    """A node beside the model node `node`; None where nothing is known before the rest.

    It waits for what the system text and the prompt mention before the last of the nodes that they
    mention, and fails nothing.
    """
    system = template(step.system or "")
    prompt = template(step.prompt)
    late = _last(system, prompt, step, names)
    if late is None:
        return None
    if late in system.names:
        return None  # the chat template puts the system text first, and takes it whole
    known = prompt.before(late)
    used = sorted(known.names | system.names)

    async def work(context: NodeContext, inputs: Inputs) -> Skip | None:
        client = services_of(context).models.client(unit, step.model)
        messages = [Message("user", known.text_for(inputs))]
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
        work,
        names.edges(used),
        names.given(used),
        policy=Policy(default=None, weight=step.weight / 10),
        kind="warm",
    )


def _last(system: Template, prompt: Template, step: ModelNode, names: Names) -> str | None:
    """The name that the beginning has to do without: the last node's, or an argument's."""
    mentioned = [reference.name for reference in (*system.references, *prompt.references)]
    arguments = [name for name in mentioned if name in step.arguments]
    if arguments:
        return arguments[0]
    sources = list(dict.fromkeys(name for name in mentioned if names.is_node(name)))
    return sources[-1] if sources else None
