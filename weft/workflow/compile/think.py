"""Node functions of model nodes with a strategy, whose threads are nodes inside the node."""

from __future__ import annotations

from typing import Any

from weft.engine.graph.node import Inputs, NodeContext, NodeFn
from weft.reasoning.question import Question
from weft.reasoning.strategies import make_strategy
from weft.workflow.compile.model import answer_value, schema_of_answer, seed_of
from weft.workflow.compile.seeds import inherited_seed
from weft.workflow.compile.services import services_of
from weft.workflow.document.expressions import template, value_template
from weft.workflow.document.spec.nodes import ModelNode
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.models.declared_model import declared_model
from weft.workflow.runtime.models.decoders import decoder_of
from weft.workflow.runtime.models.strategies import documents_of, options_of
from weft.workflow.runtime.models.think import refuse_thinker


def think(step: ModelNode, unit: Unit, on: str | None = None) -> NodeFn:
    """Answer by the strategy of `step.think`; the value is the answer, typed if there is a schema.

    Its calls take slots of the model; the node itself takes none. `on`: where programs of the model
    run, as of `ToolPlacement.programs`.
    """
    spec = step.think
    assert spec is not None
    prompt, system = template(step.prompt), template(step.system or "")
    arguments, documents = value_template(step.arguments), value_template(spec.documents)
    decode = decoder_of(unit, step)
    kind, schema = unit.types.answers.get(id(step)), schema_of_answer(step, unit)

    async def node_fn(context: NodeContext, inputs: Inputs) -> Any:
        services = services_of(context)
        client = services.models.client(unit, step.model)
        refuse_thinker(client)
        names = {**inputs, **arguments.render(inputs)}
        question = Question(
            prompt.text_for(names),
            system.text_for(names),
            documents_of(documents.render(names)),
            schema,
        )
        inherited = inherited_seed(inputs, context.node)
        seed = seed_of(services.seed if inherited is None else inherited, context)
        model = declared_model(client, unit, step.model, decode)
        options = options_of(unit, spec, seed=seed, tokens_left=context.tokens_left())
        programs = services.tools.programs(on)
        strategy = make_strategy(spec.strategy, model, options, programs=programs)
        thought = await strategy.work(question)(context, inputs)
        return answer_value(thought, context, step.output_schema, kind)

    return node_fn
