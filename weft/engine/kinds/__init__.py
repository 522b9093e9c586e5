"""Node functions that pause and expand: map, loop, branch, sub-workflow, reduce, approval.

Each is a function that makes a `NodeFn`. Bodies are templates: given a scope and its bindings they
make the nodes of one instance.
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
