from collections import Counter
from pathlib import Path

import weft

CALLS: Counter[int] = Counter()


def fetch(item: int) -> int:
    CALLS[item] += 1
    if item % 50 == 0 and CALLS[item] == 1:
        raise ConnectionError("try again")
    if item % 100 == 7:
        raise ValueError("never works")
    return item


flow = weft.Flow("fanout")
results = flow.map(
    flow.input("items", list[int]),
    lambda item: flow.tool(fetch, item, retry={"attempts": 3, "delay": 0.001}),
    width=20,
    mode="best_effort",
)
flow.output(results=results)


async def run(llm, folder: Path) -> object:
    CALLS.clear()
    results = (await flow.run(items=list(range(500))))["results"]
    done = len(results)
    return {"done": done, "failed": 500 - done, "calls": CALLS.total()}
