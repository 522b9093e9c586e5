"""An observed run as text for a prompt: bounded in size, and fenced, since its values are hostile.

The expected answer of a case is not shown; what a metric says of it stands in its feedback.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from weft.core.errors import InputError
from weft.optimisation.propose.context import ObservedNode, ObservedRun

_FENCE: Final = "~~~"


def minimal_subgraph(
    nodes: Sequence[ObservedNode], outputs: Sequence[str]
) -> tuple[ObservedNode, ...]:
    """The nodes that `outputs` depend on, those included, in the order of `nodes`.

    What is around others, such as a map, depends on them, and they on what it was given. Source:
    the minimal subgraph of OptoPrime (Trace). Addresses that were not observed are left out. Takes
    time linear in nodes and needs, for any depth of nesting that people write.
    """
    own: dict[str, set[str]] = {}
    for node in nodes:
        own.setdefault(node.node, set()).update(node.needs)
    needs = {address: set(given) for address, given in own.items()}
    for address in own:
        for around in _around(address):
            if around in own:
                needs[around].add(address)
                needs[address] |= own[around]
    found: set[str] = set()
    waiting = list(outputs)
    while waiting:
        address = waiting.pop()
        if address in needs and address not in found:
            found.add(address)
            waiting += needs[address]
    return tuple(node for node in nodes if node.node in found)


def _around(address: str) -> Iterator[str]:
    """The addresses of the nodes that an address is inside of."""
    while address := address.rpartition("/")[0]:
        yield address


def first_difference(run: ObservedRun, other: ObservedRun) -> ObservedNode | None:
    """The first node of `run`, as they ended, whose value or failure differs from `other`'s.

    A node that `other` does not have differs. Raises: `InputError` where the cases differ.
    """
    if run.case.id != other.case.id:
        raise InputError(f"runs of two cases, {run.case.id} and {other.case.id}, are not compared")
    known = {node.node: (node.value, node.failure) for node in other.nodes}
    for node in run.nodes:
        if node.node not in known or known[node.node] != (node.value, node.failure):
            return node
    return None


def fenced(value: Any, limit: int = 1000) -> str:
    """A value as text between two fences that it cannot close; its middle is cut at `limit`
    characters.
    """
    text = value if isinstance(value, str) else json.dumps(value, default=repr, ensure_ascii=False)
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
    fence = _FENCE
    while fence in text:
        fence += _FENCE[0]
    return f"{fence}\n{text}\n{fence}"


def run_text(run: ObservedRun, nodes: Sequence[ObservedNode], limit: int = 1000) -> str:
    """Inputs, these nodes, outputs, score and feedback of a run; no value longer than `limit`."""
    parts = [f"Inputs:\n{fenced(dict(run.case.inputs), limit)}"]
    for node in nodes:
        parts.append(f"Node {node.node} ({node.kind}) was given:\n{fenced(node.inputs, limit)}")
        made = ("failed", node.failure) if node.failure else ("made", node.value)
        parts.append(f"and {made[0]}:\n{fenced(made[1], limit)}")
    parts.append(f"Outputs:\n{fenced(dict(run.outputs), limit)}")
    parts.append("Score: " + ("unscored" if run.score is None else f"{run.score:g}"))
    if run.feedback:
        parts.append(f"Feedback:\n{fenced(run.feedback, limit)}")
    return "\n".join(parts)
