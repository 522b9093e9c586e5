"""S*: samples mended by running them, then told apart by inputs. Knows no server.

"S*: Test Time Scaling for Code Generation" (arXiv 2502.14382).
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.ports import ModelClient
from weft.engine import Work
from weft.reasoning.code.bench import Runner
from weft.reasoning.code.prompts import write_messages
from weft.reasoning.code.solving import Solver, Task
from weft.reasoning.code.writing import Draft, writing
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.thread.asking import Asking


class SStarStrategy:
    """`make_strategy("sstar", ...)`: `width` samples; the answer is a program.

    Settings: see `weft.reasoning.code.solving.SETTINGS`.
    """

    name = "sstar"

    def __init__(
        self, model: ModelClient, options: ThinkOptions, runner: Runner | None = None
    ) -> None:
        self._solver = Solver(self.name, model, options, {}, runner)
        self._width = options.width

    def work(self, question: Question) -> Work:
        """See `Strategy.work`. Raises: `BuildError` for tests that are none."""
        return self._solver.work(question, self._write)

    async def _write(self, thread: Asking, task: Task) -> Sequence[Draft | None]:
        messages = write_messages(task.problem, task.system)
        job = writing(task.bench, messages, self._solver.settings["debug"], task.keep)
        return await thread.fork(
            "samples", [(f"sample{number}", job) for number in range(1, self._width + 1)]
        )


def make(model: ModelClient, options: ThinkOptions) -> SStarStrategy:
    """See `weft.reasoning.strategies`."""
    return SStarStrategy(model, options)
