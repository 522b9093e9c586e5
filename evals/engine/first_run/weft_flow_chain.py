"""A chain of 100 with `weft.Flow`, recorded as by default."""

import sys

import weft


@weft.tool
async def step(value: int) -> int:
    """Do nothing."""
    return value + 1


flow = weft.Flow("chain_100")
value = flow.input("first", int)
for number in range(100):
    value = flow.tool(step, value, name=f"n{number}")
flow.output(last=value)

first = int(sys.argv[1])
if flow.run_sync(first=first)["last"] != first + 100:
    sys.exit("not a chain of 100")
