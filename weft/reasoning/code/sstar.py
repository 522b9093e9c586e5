"""S*: samples repaired by running them, then separated by inputs.

"S*: Test Time Scaling for Code Generation" (arXiv 2502.14382).
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.reasoning.chat.thread import ChatThread
from weft.reasoning.code.prompts import write_messages
from weft.reasoning.code.solver import CodeStrategy, CodeTask, ProgramDraft, write_job


class SStarStrategy(CodeStrategy):
    """`width` samples; the answer is a program. Settings: `weft.reasoning.code.solver.SETTINGS`."""

    name = "sstar"

    async def write(self, thread: ChatThread, task: CodeTask) -> Sequence[ProgramDraft | None]:
        messages = write_messages(task.problem, task.system)
        job = write_job(task.bench, messages, self.settings["debug"], task.keep)
        return await thread.fork(
            "samples", [(f"sample{number}", job) for number in range(1, self.options.width + 1)]
        )
