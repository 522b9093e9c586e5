"""Node functions of model nodes with an agent, whose tool calls are nodes inside the node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from weft.agents.agent import AgentOptions, Answer
from weft.agents.catalogue.options import CatalogueOptions
from weft.agents.loops import check_options, make_agent
from weft.core.errors import BuildError
from weft.engine.graph.node import Inputs, NodeContext, NodeFn
from weft.engine.kinds.body import map_result
from weft.planner.grammar.limits import GrammarLimits
from weft.planner.rehearsal.options import RehearsalOptions
from weft.workflow.compile.model import schema_of_answer
from weft.workflow.compile.seeds import inherited_seed
from weft.workflow.compile.services import services_of
from weft.workflow.document.expressions import template, value_template
from weft.workflow.document.facts_file import read_facts
from weft.workflow.document.python_types import conform
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.model_settings import AgentSpec
from weft.workflow.document.spec.nodes import ModelNode
from weft.workflow.document.spec.sampling import SamplingPart
from weft.workflow.document.unit import Unit, file_beside
from weft.workflow.runtime.models.declared_model import declared_model
from weft.workflow.runtime.models.decoders import decoder_of
from weft.workflow.runtime.tools.flow_tools import FlowTools


def options_of(
    unit: Unit, step: ModelNode, spec: AgentSpec, instructions: str = ""
) -> AgentOptions:
    """The options of a node; by default those of `AgentOptions`. Raises: `BuildError`."""
    values: dict[str, Any] = {
        "rounds": spec.rounds,
        "calls": spec.calls,
        "constrain": spec.constrain,
        "grammar": _limits(spec),
        "catalogue": _catalogue(unit, spec),
        "rehearsal": _rehearsal(unit, spec),
        "schema": step.output_schema,
        "temperature": step.temperature,
        "max_tokens": step.max_tokens,
        "seed": step.seed,
        **{name: getattr(step, name) for name in SamplingPart.model_fields},
    }
    given = {name: value for name, value in values.items() if value is not None}
    return AgentOptions(**given, instructions=instructions)


def _limits(spec: AgentSpec) -> GrammarLimits | None:
    if spec.grammar is None:
        return None
    return GrammarLimits(**spec.grammar.model_dump(exclude_none=True))


def _catalogue(unit: Unit, spec: AgentSpec) -> CatalogueOptions | None:
    if spec.catalogue is None:
        return None
    given = spec.catalogue.model_dump(exclude_none=True)
    if "file" in given:
        hint = "keep the catalogue beside the workflow"
        given["file"] = file_beside(unit, given["file"], hint)
    return CatalogueOptions(**given)


def _rehearsal(unit: Unit, spec: AgentSpec) -> RehearsalOptions | None:
    if spec.rehearsal is None:
        return None
    given = spec.rehearsal.model_dump(exclude_none=True)
    if isinstance(facts := given.get("facts"), str):
        hint = "keep the facts beside the workflow"
        given["facts"] = read_facts(file_beside(unit, facts, hint))
    return RehearsalOptions(**given)


def check_agent(unit: Unit, step: ModelNode, path: KeyPath) -> None:
    """Check the agent of the node at `path`, if any. Raises: `BuildError`, with the position."""
    if step.agent is None:
        return
    try:
        check_options(step.agent.loop, options_of(unit, step, step.agent))
    except BuildError as error:
        unit.fail(error, (*path, "agent"), at_key=True)


def act(step: ModelNode, unit: Unit, on: str | None = None) -> NodeFn:
    """Run the agent of `step.agent`; the value is its answer, typed if there is a schema.

    Its calls take slots of the model and of the tools; the node itself takes none. `on`: see
    `Toolset.place`.
    """
    spec = step.agent
    assert spec is not None
    prompt, system = template(step.prompt), template(step.system or "")
    arguments = value_template(step.arguments)
    decode = decoder_of(unit, step)
    kind, schema = unit.types.answers.get(id(step)), schema_of_answer(step, unit)

    async def node_fn(context: NodeContext, inputs: Inputs) -> Any:
        services = services_of(context)
        names = {**inputs, **arguments.render(inputs)}
        tools = FlowTools(unit, services.tools, step.tools, approve=spec.approve, on=on)
        await tools.start()
        client = services.models.client(unit, step.model)
        model = declared_model(client, unit, step.model, decode)
        options = options_of(unit, step, spec, system.text_for(names))
        seed = inherited_seed(inputs, context.node) if step.seed is None else step.seed
        options = replace(options, schema=schema, seed=seed)
        agent = make_agent(spec.loop, tools, model, options)

        def value(answer: Answer) -> Any:
            services.findings[context.node] = answer
            return answer.value if kind is None else conform(kind, answer.value)

        return map_result(await agent.work(prompt.text_for(names))(context, inputs), value)

    return node_fn
