"""Thinking from Python: one call, its cost, and a model of its own. Run it: python think.py"""

import asyncio

import weft
from weft.serve import Message, ModelRequest, complete

QUESTION = "Tom has 3 boxes with 4 pens each. How many pens are there?"


async def main(model: str = "local:smollm2-135m-instruct") -> None:
    """Ask by two strategies, then a third time through a client that thinks."""
    options = weft.ThinkOptions(width=4, max_tokens=96, budget=1_000)
    for strategy in ("direct", "sample"):
        thought = await weft.think(QUESTION, strategy=strategy, model=model, options=options)
        counts = thought.counts
        print(f"{strategy}: {thought.answer.strip()!r}, because {thought.why}")
        print(f"  {counts.total_tokens} tokens, {counts.critical_path_tokens} in a row")

    async with weft.Models() as models:  # a strategy as a model client like any other
        careful = weft.ThoughtModel(models.of(model), "sample", options)
        answer = await complete(careful, ModelRequest((Message("user", QUESTION),)))
        print(f"{careful.model}: {answer.text.strip()!r}, {answer.usage.completion_tokens} tokens")


if __name__ == "__main__":
    asyncio.run(main())
