"""The inputs of a node, and the digest by which an earlier outcome of it is recognised."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring_ascii
from typing import Any

from weft.core.ids import NodeId
from weft.engine.graph.content_digest import DigestTexts, content_text
from weft.engine.graph.node import MISSING, Join, StreamedItems
from weft.engine.scheduler.commands import Restore, RestoreResult
from weft.engine.scheduler.resume_state import ResumeState
from weft.engine.scheduler.state import NodeState

States = Mapping[NodeId, NodeState]


def node_inputs(state: NodeState, states: States) -> dict[str, Any]:
    """The constants and input values of a starting node, under the names of its edges."""
    node = state.node
    values, default = dict(node.given), node.join.default
    won = state.winners
    for edge in node.edges:
        name = edge.name
        if name and (won is None or edge.source in won):
            source = states[edge.source]
            outcome = source.outcome
            if edge.stream and (streamed := _streamed(source)) is not None:
                values[name] = streamed
            elif outcome is not None and outcome.status == "succeeded":
                values[name] = outcome.value
            elif default is not MISSING:
                values[name] = default
    return values


def joined_values(winners: Sequence[NodeId], join: Join, states: States) -> list[Any]:
    """The values of the children that a join decided for, in declared order."""
    values = [_value(states[child], join.default) for child in winners]
    return [value for value in values if value is not MISSING]


def _streamed(source: NodeState) -> StreamedItems | None:
    if not source.streams or (source.outcome is not None and source.outcome.ok):
        return None
    assert source.growth is not None
    return StreamedItems(source.growth.grow.results)


def _value(source: NodeState, default: Any) -> Any:
    outcome = source.outcome
    return outcome.value if outcome is not None and outcome.status == "succeeded" else default


_HEX = 32  # digits of SHA-256: 128 bits


def restore_node(
    request: Restore,
    recall: ResumeState,
    states: Mapping[NodeId, NodeState],
    texts: DigestTexts | None = None,
) -> RestoreResult:
    """The digest of a node that is about to start, and its history.

    `texts` caches the lists that other nodes of the run have received.
    """
    state, argument = request
    state.digest = digest(state, argument, states, texts)
    history = recall.outcome(state.node.id, state.digest)
    return RestoreResult(state, argument, state.digest, history)


def digest(
    state: NodeState,
    argument: Mapping[str, Any],
    states: Mapping[NodeId, NodeState],
    texts: DigestTexts | None = None,
) -> str:
    """In hexadecimal, of the node's identity and its inputs; "" for a node without stable content.

    A streaming edge counts as its source, whether its values arrive item by item or, since the
    source has ended, as a list. A foreign object among the inputs has no content, and neither has a
    node that is not recallable. A node without an identity takes the digest of the node that
    appended it.
    """
    node, parent = state.node, state.parent
    identity = node.identity or (parent.digest if parent is not None else "")
    if not node.recallable or (parent is not None and not identity):
        return ""
    streamed: dict[str, Any] = {}
    for edge in node.edges:
        if edge.stream and edge.name in argument:
            source = states[edge.source]
            streamed[edge.name] = [
                edge.source,
                digest(source, node_inputs(source, states), states, texts),
            ]
    if streamed:
        argument = {**argument, **streamed}
    if not argument:
        text = identity
    else:
        try:
            text = f"[{encode_basestring_ascii(identity)}, {content_text(argument, texts)}]"
        except Exception:  # noqa: BLE001 - a foreign class may raise anything when it is read
            return ""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HEX]
