"""Seeds of model calls inside a workflow node that has one: common random numbers.

Such a seed is a binding that no document can name. Two runs that give a workflow the same seed draw
the same random numbers in the same nodes, wherever that workflow stands in them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from weft.core.errors import TypeMismatch
from weft.core.ids import NodeId

SEED: Final = "<seed>"
"""The binding with the seed and the depth of the workflow node; impossible as a name."""
_MOST: Final = 2**31


def seed_binding(value: object, node: NodeId) -> tuple[int, int]:
    """The value of `SEED` inside the workflow node `node`, whose `seed` is `value`.

    Raises: `TypeMismatch` for what is not an integer.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        hint = 'write a whole number, or an expression such as "{{ item.seed }}"'
        raise TypeMismatch(f"`seed` is {value!r:.80}", node=node, hint=hint)
    return value, node.count("/") + 1


def inherited_seed(inputs: Mapping[str, Any], node: NodeId) -> int | None:
    """The seed, 0 to 2**31 - 1, of a model node in a seeded workflow node; None outside of one.

    It depends on the seed there and on the place of `node` in that workflow.
    """
    if SEED not in inputs:
        return None
    seed, depth = inputs[SEED]
    place = "/".join(node.split("/")[depth:])
    digest = hashlib.sha256(f"{seed}\0{place}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % _MOST
