"""An observed run as the text of a small program: its nodes, what may change, values, feedback.

Source: the problem that OptoPrime puts to a model (Trace: Cheng et al., arXiv 2406.16218). Values
are JSON on one line each, which they cannot leave, since they are hostile.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weft.optimisation.options import EditOption
from weft.optimisation.propose.context import ObservedNode, ObservedRun
from weft.optimisation.propose.rewrites import references
from weft.optimisation.propose.traces import fenced

_MOST_ITEMS: Final = 3
"""Items of a map, or rounds of a loop, whose values are shown."""


@dataclass(frozen=True, slots=True)
class ProgramVariable:
    """A knob that a suggestion may set.

    `name`: that of the knob; `node`: the node that it belongs to, empty for one of several nodes;
    `value`: what it is now. `options`: the values that it may take, by name; none for a prompt,
    which may be any text with the placeholders of `value`.
    """

    name: str
    node: str
    value: str
    options: Mapping[str, EditOption] = field(default_factory=dict)

    def chosen(self, given: object) -> EditOption | None:
        """The option that a model means by `given`: its name, or the value in it. Else None."""
        if isinstance(given, str) and given in self.options:
            return self.options[given]
        return self.options.get(json.dumps(given, ensure_ascii=False, default=repr))

    @property
    def constraint(self) -> str:
        """What it may be, on one line."""
        if self.options:
            return f"{self.name}: one of {', '.join(_line(name) for name in self.options)}"
        needed = ", ".join(dict.fromkeys(references(self.value)))
        return f"{self.name}: a text with these placeholders, as they are: {needed or 'none'}"


def named_options(knob: str, options: Sequence[EditOption]) -> dict[str, EditOption]:
    """The options of a knob by their labels, without the knob's name; equal labels get a number."""
    found: dict[str, EditOption] = {}
    for option in options:
        label = option.label.removeprefix(f"{knob} = ")
        number, name = 1, label
        while name in found:
            number += 1
            name = f"{label} ({number})"
        found[name] = option
    return found


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
        "Feedback": [f"score: {score}", *([_line(run.feedback, limit)] if run.feedback else [])],
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
            yield f"{address} failed: {_line(node.failure, limit)}"
        else:
            yield f"{address} = {_line(node.value, limit)}"


def _variable(variable: ProgramVariable) -> str:
    if variable.options:
        return f"{variable.name} = {_line(variable.value)}"
    return f"{variable.name} =\n{fenced(variable.value, 8_000)}"


def _pairs(before: str, values: Mapping[str, Any], limit: int) -> Iterator[str]:
    for name, value in values.items():
        yield f"{before}{name} = {_line(value, limit)}"


def _line(value: Any, limit: int = 600) -> str:
    """A value as JSON on one line; the text of a long one is cut."""
    written = json.dumps(value, ensure_ascii=False, default=repr)
    if len(written) <= limit:
        return written
    text = value if isinstance(value, str) else written
    return json.dumps(f"{text[:limit]} ... ({len(text)} characters)", ensure_ascii=False)
