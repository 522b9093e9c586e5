"""Works of model nodes that act: an agent has the model call tools, as nodes inside the node."""

from __future__ import annotations

from typing import Any

from weft.agents.agent import Answer
from weft.agents.loops import make_agent
from weft.engine.followed import followed
from weft.engine.node import Inputs, NodeContext, Work
from weft.workflow.agent_options import options_of
from weft.workflow.compile.services import services_of
from weft.workflow.declared_model import declared_model
from weft.workflow.decoders import decoder_of
from weft.workflow.document.leaves import ModelNode
from weft.workflow.expressions import template, value_template
from weft.workflow.flow_tools import FlowTools
from weft.workflow.unit import Unit


def act(step: ModelNode, unit: Unit) -> Work:
    """Ask the agent of `step.agent`; the value is its answer, typed where there is a schema.

    Its calls take slots of the model's name in the document and of the tools, not the node itself.
    """
    said = step.agent
    assert said is not None
    prompt, system = template(step.prompt), template(step.system or "")
    arguments = value_template(step.arguments)
    decode = decoder_of(unit, step)

    async def work(context: NodeContext, inputs: Inputs) -> Any:
        services = services_of(context)
        names = {**inputs, **arguments.render(inputs)}
        tools = FlowTools(unit, services.tools, step.tools)
        await tools.start()
        client = services.models.client(unit, step.model)
        model = declared_model(client, unit, step.model, decode)
        options = options_of(step, said, system.text_for(names))
        agent = make_agent(said.loop, tools, model, options)

        def value(answer: Answer) -> Any:
            services.findings[context.node] = answer
            return answer.value

        return followed(await agent.work(prompt.text_for(names))(context, inputs), value)

    return work
