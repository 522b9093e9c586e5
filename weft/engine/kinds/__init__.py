"""The works that pause and grow: map, loop, branch, sub-workflow, reduce, human approval.

Each is a function that makes a `Work`. Bodies are templates: given a scope and its bindings they
make the nodes of one instance.
"""

from weft.engine.kinds.ask import ask
from weft.engine.kinds.body import Body, Fragment, instances
from weft.engine.kinds.branch import branch
from weft.engine.kinds.loop import loop
from weft.engine.kinds.map import map_over
from weft.engine.kinds.reduce import fold, reduce_with
from weft.engine.kinds.subgraph import subgraph

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
