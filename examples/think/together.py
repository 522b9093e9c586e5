"""Workers that see one another's tokens as they are written (Hogwild! Inference), live.

    python examples/think/together.py [--layout combined] [--workers 2] [--tokens 60] [TASK]

Prints each worker's text as it grows, in the order of writing. The embedded model has 135 million
parameters and does not collaborate; what can be seen is that what one writes changes what another
writes next. Needs `weft model pull smollm2-135m-instruct` once.
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import aclosing

from weft.serve import (
    Completion,
    ConcurrentAttention,
    LocalModel,
    Message,
    ModelRequest,
    Sampling,
    TextDelta,
)

TASK = "List six animals and one fact about each."
NAMES = ("Alice", "Bob", "Carol", "David")
RULES = (
    "{names} do this task together and see what the others write. Nobody repeats another.\n\nTask: "
)


async def write(model: LocalModel, index: int, arguments: argparse.Namespace) -> Completion:
    """One worker: its text is printed piece by piece, with its name in front."""
    name = NAMES[index]
    team = ", ".join(NAMES[: arguments.workers])
    request = ModelRequest(
        messages=(Message("user", RULES.format(names=team) + arguments.task),),
        sampling=Sampling(max_tokens=arguments.tokens, temperature=0.7, seed=index),
        attention=ConcurrentAttention(
            "example",
            arguments.workers,
            index,
            arguments.layout,
            others="" if arguments.layout == "interleaved" else "What the others write now:\n\n",
            own="\n\nWhat I write now:\n\n",
            opening=f"**{name} [{{step}}]:** ",
        ),
    )
    async with aclosing(model.generate(request)) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                print(f"{name:>6} | {event.text!r}", flush=True)
            elif isinstance(event, Completion):
                return event
    raise AssertionError("a stream ends with a completion")


async def main() -> None:
    """Run the workers side by side, then show what each of them wrote."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", nargs="?", default=TASK)
    parser.add_argument("--layout", default="combined")
    parser.add_argument("--workers", type=int, default=2, choices=range(1, len(NAMES) + 1))
    parser.add_argument("--tokens", type=int, default=60)
    arguments = parser.parse_args()
    async with aclosing(LocalModel("smollm2-135m-instruct")) as model:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(write(model, index, arguments))
                for index in range(arguments.workers)
            ]
        for name, task in zip(NAMES, tasks, strict=False):
            used = task.result().usage
            print(f"\n--- {name}, {used.completion_tokens} tokens in {used.forwards} passes\n")
            print(task.result().text)
        print(f"\n{model.forwards} forward passes in all")


if __name__ == "__main__":
    asyncio.run(main())
