"""What tells a node's work and inputs from any other: by this an earlier outcome is recognised."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii
from typing import Any

from weft.core.ids import NodeId
from weft.engine.caching import content_text
from weft.engine.commands import Look, Looked
from weft.engine.delivery import inputs
from weft.engine.digest_text import DigestTexts
from weft.engine.recall import Recall
from weft.engine.state import NodeState

_HEX = 32  # digits of SHA-256: 128 bits


def look_up(
    look: Look, recall: Recall, states: Mapping[NodeId, NodeState], texts: DigestTexts | None = None
) -> Looked:
    """The digest of a node that is about to start, and what is known of it.

    `texts` knows the lists that other nodes of the run have received.
    """
    state, argument = look
    its = state.digest = digest(state, argument, states, texts)
    return Looked(state, argument, its, recall.outcome(state.node.id, its))


def digest(
    state: NodeState,
    argument: Mapping[str, Any],
    states: Mapping[NodeId, NodeState],
    texts: DigestTexts | None = None,
) -> str:
    """In hexadecimal, of the node's identity and what it receives; "" where that has no content.

    What comes over a streaming edge stands for its source, whether it comes item by item or, since
    the source has ended, as a list. A foreign object among the inputs has no content, and a node
    that is not to be recalled never has.

    A node without an identity is what the node makes of it that appended it.
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
                digest(source, inputs(source, states), states, texts),
            ]
    if streamed:
        argument = {**argument, **streamed}
    if not argument:
        text = identity
    else:
        try:
            text = f"[{encode_basestring_ascii(identity)}, {content_text(argument, texts)}]"
        except Exception:  # noqa: BLE001 - a foreign class may raise anything when it is looked at
            return ""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HEX]
