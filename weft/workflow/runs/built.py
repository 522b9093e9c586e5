"""Whether anything was built on what a node came to: then a word on it comes too late.

Knows the nodes of a workflow by their names, and those of its run by their ids; no journal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from weft.core.ids import NodeId, in_any_attempt, parent_of, stem
from weft.workflow.runs.changed import downstream


def scopes_of(node: NodeId) -> Iterator[NodeId]:
    """`node` and what it is inside, innermost first."""
    scope: NodeId | None = node
    while scope is not None:
        yield scope
        scope = parent_of(scope)


def built_on(
    node: NodeId, needs: Mapping[str, frozenset[str]], worked: Collection[NodeId]
) -> NodeId | None:
    """The first of the nodes that `worked` and took in what `node` came to; None: there is none.

    `needs`: of each node as it is written, those whose values it takes. For a node that is not
    written there, such as an agent's call, nobody can tell: it is the node itself.
    """
    if stem(node) not in needs:
        return node
    for scope in scopes_of(in_any_attempt(node)):
        used = next((w for w in worked if _takes(in_any_attempt(w), scope, needs)), None)
        if used is not None:
            return used
    return None


def _takes(worked: NodeId, scope: NodeId, needs: Mapping[str, frozenset[str]]) -> bool:
    """Whether `worked` takes in what `scope` came to, beside it."""
    parent = parent_of(scope)
    if parent is not None and scope[len(parent)] == "#":  # a loop: what comes later
        number, _, _ = worked[len(parent) + 1 :].partition("/")
        later = number.isdecimal() and int(number) > int(scope[len(parent) + 1 :])
        return worked.startswith(f"{parent}#") and later
    if parent is not None and scope[len(parent)] == "[":
        return False  # items know nothing of one another
    label = stem(scope)
    beside = parent is None or worked.startswith(f"{parent}/")
    inside = stem(worked).startswith(f"{label}/")
    return beside and not inside and stem(worked) in downstream(needs, {label}) - {label}
