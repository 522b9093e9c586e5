"""What people say that tools returned, checked before the run goes on.

Where it is not known yet what a tool returns, its call checks that: see `weft.engine.cassette`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from weft.core.calls import ToolCalled
from weft.core.errors import InputError, WeftError
from weft.core.ports.journal import Numbered
from weft.core.values import JsonSchema
from weft.engine.cassette import Confirmation
from weft.engine.cassette.once import described
from weft.engine.effects import word_for
from weft.validation import misfit
from weft.workflow.document.leaves import ToolNode
from weft.workflow.document.walk import walk
from weft.workflow.imports import tool_of
from weft.workflow.runs.unsettled import acted
from weft.workflow.sources import source_of
from weft.workflow.unit import Unit


def check_results(
    unit: Unit, records: Iterable[Numbered], words: Mapping[str, Confirmation]
) -> None:
    """Raises: `InputError` where a tool of the workflow cannot have returned what a word says."""
    for call in acted(records):
        said, made = words.get(call.where), call.called.record
        if said is None or said.kind == "repeat" or not isinstance(made, ToolCalled):
            continue
        if said.value is None and not call.is_open:
            continue  # what was done is kept, with its result
        schemas = list(_results(unit, made.tool))
        reasons = [misfit(said.value, schema) for schema in schemas]
        if reasons and all(reasons):
            raise InputError(
                f"{made.tool} cannot have returned what was said of its call: {reasons[0]}",
                hint=f"say --confirm {word_for(call.node, 'done:JSON')}, "
                f"what it returned as JSON{described(schemas[0])}",
            )


def _results(unit: Unit, name: str) -> Iterator[JsonSchema]:
    """What the tools of this name say of their results, where that is known without a server."""
    for included in unit.everything():
        steps = (step for _, step in walk(included.document.nodes))
        used = [step.tool for step in steps if isinstance(step, ToolNode)]
        for text in dict.fromkeys((*included.document.tools, *used)):
            if text.rpartition(":")[2] != name or source_of(included, text) is not None:
                continue
            try:
                result = tool_of(included, text).spec.result
            except WeftError:
                continue  # its node says so
            if result is not None:
                yield result
