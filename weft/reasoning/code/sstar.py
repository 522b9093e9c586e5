"""S*: samples mended by running them, then told apart by inputs. Knows no server.

"S*: Test Time Scaling for Code Generation" (arXiv 2502.14382).
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.ports import ModelClient
from weft.engine import NodeFn
from weft.reasoning.chat.thread import ChatThread
from weft.reasoning.code.bench import ProgramRunner
from weft.reasoning.code.prompts import write_messages
from weft.reasoning.code.solver import CodeSolver, CodeTask, ProgramDraft, write_job
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question


class SStarStrategy:
    """`make_strategy("sstar", ...)`: `width` samples; the answer is a program.

    Settings: see `weft.reasoning.code.solver.SETTINGS`.
    """

    name = "sstar"

    def __init__(
        self, model: ModelClient, options: ThinkOptions, runner: ProgramRunner | None = None
    ) -> None:
        self._solver = CodeSolver(self.name, model, options, {}, runner)
        self._width = options.width

    def work(self, question: Question) -> NodeFn:
        """See `Strategy.work`. Raises: `BuildError` for tests that are none."""
        return self._solver.work(question, self._write)

    async def _write(self, thread: ChatThread, task: CodeTask) -> Sequence[ProgramDraft | None]:
        messages = write_messages(task.problem, task.system)
        job = write_job(task.bench, messages, self._solver.settings["debug"], task.keep)
        return await thread.fork(
            "samples", [(f"sample{number}", job) for number in range(1, self._width + 1)]
        )


def make(model: ModelClient, options: ThinkOptions) -> SStarStrategy:
    """See `weft.reasoning.strategies`."""
    return SStarStrategy(model, options)
