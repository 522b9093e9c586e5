"""A chain of 100 with pydantic-graph, without spans."""

import asyncio
import sys
from itertools import pairwise

from pydantic_graph import GraphBuilder, StepContext


async def step(context: StepContext[None, None, int]) -> int:
    """Do nothing."""
    return context.inputs + 1


builder = GraphBuilder(input_type=int, output_type=int, auto_instrument=False)
steps = [builder.step(step, node_id=f"n{number}") for number in range(100)]
places = [builder.start_node, *steps, builder.end_node]
for source, target in pairwise(places):
    builder.add(builder.edge_from(source).to(target))
graph = builder.build()

first = int(sys.argv[1])
if asyncio.run(graph.run(inputs=first, infer_name=False)) != first + 100:
    sys.exit("not a chain of 100")
