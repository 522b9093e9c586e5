"""Node functions that expand or pause: map, reduce, fold, loop, branch, sub-workflow, ask a person.

Each function here makes a `NodeFn`. A body is a template: from a scope and bindings it makes the
nodes of one instance.
"""

from weft.engine.kinds.body import Body, Fragment, instances, subgraph
from weft.engine.kinds.functions import ask, branch, fold, loop, map_over, reduce_with

__all__ = [
    "Body",
    "Fragment",
    "ask",
    "branch",
    "fold",
    "instances",
    "loop",
    "map_over",
    "reduce_with",
    "subgraph",
]
