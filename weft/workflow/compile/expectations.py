"""What a node expects of its value, and of the results of a map that grows."""

from __future__ import annotations

from typing import Any

from weft.core.errors import ExpectationFailed
from weft.engine.graph.node import Inputs, NodeContext, NodeFn
from weft.engine.kinds import Growth, GrowthStep, map_result
from weft.workflow.document import BaseNode
from weft.workflow.document.expressions import Template, template
from weft.workflow.document.expressions.sandbox import to_json
from weft.workflow.document.spec.settings import GrowSpec

_SHOWN = 200


def checked(step: BaseNode, node_fn: NodeFn) -> NodeFn:
    """`node_fn`, whose value must be what `step` expects. Raises, in the node:
    `ExpectationFailed`.
    """
    if not step.expect:
        return node_fn
    tests = {words: template(text) for words, text in step.expect.items()}

    async def run(context: NodeContext, inputs: Inputs) -> Any:
        def check(value: Any) -> Any:
            seen = {**inputs, "value": value}
            failed = [words for words, test in tests.items() if not test.render(seen)]
            if failed:
                raise ExpectationFailed(
                    f"it is not so that: {'; '.join(failed)}. The value is {_shown(value)}",
                    node=context.node,
                    hint="repair what makes the value, or change `expect`; a `default` or a "
                    "`fallback` takes its place",
                )
            return value

        return map_result(await node_fn(context, inputs), check)

    return run


def growth_of(grow: GrowSpec) -> Growth:
    """The engine's form of `grow`."""
    test = None if grow.accept is None else template(grow.accept)

    def accept(inputs: Inputs, step: GrowthStep) -> None:
        if test is not None and not test.render({**inputs, **step.names()}):
            raise _refused(test, step)

    return Growth(grow.first, grow.factor, grow.seed, accept)


def _refused(test: Template, step: GrowthStep) -> ExpectationFailed:
    failed = f", {step.failed} of them failed" if step.failed else ""
    return ExpectationFailed(
        f"after {step.done} of {step.total} items{failed}, `accept` does not hold: "
        f"{test.text.strip()}. The results so far are {_shown(step.value)}",
        hint="nothing was done for the other items: repair the body or the data, and resume",
    )


def _shown(value: Any) -> str:
    text = to_json(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text):,} characters)"
