"""An observed run as the text of a small program: its nodes, what may change, values, feedback.

Source: the problem that OptoPrime puts to a model (Trace: Cheng et al., arXiv 2406.16218). Values
are JSON on one line each, which they cannot leave, since they are hostile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from weft.optimisation.propose.context import ObservedNode, ObservedRun
from weft.optimisation.propose.traces import fenced
from weft.optimisation.propose.variables import ProgramVariable, one_line, option_name

_MOST_ITEMS: Final = 3
"""Items of a map, or rounds of a loop, whose values are shown."""


def program_text(
    run: ObservedRun,
    nodes: Sequence[ObservedNode],
    variables: Sequence[ProgramVariable],
    outputs: Mapping[str, Any],
    limit: int = 600,
) -> str:
    """The nodes of a run as a program, its variables and their constraints, values and feedback.

    `outputs` are those of the document, as it writes them. No value is longer than `limit`.
    """
    values = [line for address in _addresses(nodes) for line in _values(address, nodes, limit)]
    score = "none" if run.score is None else f"{run.score:g}"
    parts = {
        "Program": [*_program(nodes, variables), *_pairs("output ", outputs, limit)],
        "Variables": [_variable(each) for each in variables],
        "Constraints": [each.constraint for each in variables],
        "Inputs": list(_pairs("", run.case.inputs, limit)),
        "Intermediate values": values,
        "Outputs": list(_pairs("", run.outputs, limit)),
        "Feedback": [f"score: {score}", *([one_line(run.feedback, limit)] if run.feedback else [])],
    }
    return "\n\n".join(
        f"# {title}\n" + ("\n".join(lines) or "none") for title, lines in parts.items()
    )


def _program(nodes: Sequence[ObservedNode], variables: Sequence[ProgramVariable]) -> Iterator[str]:
    """One line for each node: its kind, its variables, and what it is given."""
    for address in _addresses(nodes):
        seen = [node for node in nodes if node.node == address]
        own = [each.name for each in variables if each.node == address]
        given = sorted({name for node in seen for name in node.inputs})
        times = f"  # {len(seen)} times" if len(seen) > 1 else ""
        yield f"{address} = {seen[0].kind}({', '.join([*own, *given])}){times}"


def _addresses(nodes: Sequence[ObservedNode]) -> list[str]:
    return list(dict.fromkeys(node.node for node in nodes))


def _values(address: str, nodes: Sequence[ObservedNode], limit: int) -> Iterator[str]:
    for node in [each for each in nodes if each.node == address][:_MOST_ITEMS]:
        if node.failure:
            yield f"{address} failed: {one_line(node.failure, limit)}"
        else:
            yield f"{address} = {one_line(node.value, limit)}"


def _variable(variable: ProgramVariable) -> str:
    if variable.options:
        return f"{variable.name} = {option_name(variable.value)}"
    return f"{variable.name} =\n{fenced(variable.value, 8_000)}"


def _pairs(before: str, values: Mapping[str, Any], limit: int) -> Iterator[str]:
    for name, value in values.items():
        yield f"{before}{name} = {one_line(value, limit)}"
