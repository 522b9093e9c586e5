"""Node functions that expand or pause: map, reduce, fold, loop, branch, sub-workflow, ask a person.

Each function here makes a `NodeFn`. A body is a template: from a scope and bindings it makes the
nodes of one instance.
"""

from weft.engine.kinds.body import Body, Fragment, instances, map_result, subgraph
from weft.engine.kinds.functions import ask, branch, fold, loop, map_over, reduce_with
from weft.engine.kinds.growth import Growth, GrowthStep

__all__ = [
    "Body",
    "Fragment",
    "Growth",
    "GrowthStep",
    "ask",
    "branch",
    "fold",
    "instances",
    "loop",
    "map_over",
    "map_result",
    "reduce_with",
    "subgraph",
]
