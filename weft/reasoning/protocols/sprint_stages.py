"""SPRINT as published (arXiv 2506.05745, appendix A.1), for models trained with its tags as text.

Stage p is `<Plan_p>` with tasks in `<prompt_p.k>`, then `<Execution_p>` with one `<execution_p.k>`
for each of them. An executor reads everything up to the end of its task, and not the rest of the
plan. `<Final_answer>` ends it. Of the published prompt nothing is written here: it belongs into the
system prompt of the question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from weft.reasoning.question import Question, conversation, question_text
from weft.reasoning.runtime.grammar import AppendJoin, ProtocolGrammar
from weft.reasoning.runtime.moves import (
    ChildSpec,
    Continue,
    ForkMove,
    Move,
    Opening,
    ParsedOutput,
    Part,
    Parts,
    ProtocolText,
    Return,
)
from weft.reasoning.runtime.moves import FinalAnswer as Answer
from weft.reasoning.runtime.thread import Thread

_PLAN_END: Final = "</Plan_"
_TASK_END: Final = "</execution_"
_FINAL: Final = "<Final_answer>"
_FINAL_END: Final = "</Final_answer>"
STOPS: Final = ("</Execution_", _PLAN_END, _FINAL_END, _TASK_END)
"""The published stop texts, of planner and executors alike."""

_PLAN: Final = re.compile(r"<Plan_(\d{1,3})>")
_TASK: Final = re.compile(r"</prompt_(\d{1,3}\.\d{1,3})>")
_MARK: Final = re.compile(r"</?(?:Plan|Execution|execution|prompt)_[\d.]*>?|</?Final_answer>")
_STAGE: Final = "stage"


class SprintStages(ProtocolGrammar):
    """Planner and executors are one model, with one prompt."""

    name = "sprint"
    trained = True
    tags = (
        *("<Plan_", _PLAN_END, "<prompt_", "</prompt_", "<Execution_", "</Execution_"),
        *("<execution_", _TASK_END, _FINAL, _FINAL_END),
    )
    lead = f"\n{_FINAL}\n"

    def opening(self, question: Question, *, prompted: bool) -> Opening:  # noqa: ARG002
        text = f"<Question>\n{question_text(question)}\n</Question>"
        return Opening(conversation(question, "", text))

    def stops(self, thread: Thread) -> tuple[str, ...]:  # noqa: ARG002
        return STOPS

    def classify(self, thread: Thread, output: ParsedOutput) -> Move:
        stop = output.stop
        if thread.depth:
            ended = stop in (None, _TASK_END)
            return Return(thread.text.removesuffix(stop or ""), cut=None if ended else stop)
        if stop == _PLAN_END:
            return self._planned(thread, output.text)
        if stop == _FINAL_END or output.ended == "end":
            return Answer(self.answer(thread))
        return Continue()

    def _planned(self, thread: Thread, text: str) -> Move:
        """The executions of the plan that has just ended; without tasks the model continues."""
        numbers = _PLAN.findall(text)
        stage = numbers[-1] if numbers else str(thread.memory.get(_STAGE, 0) + 1)
        thread.memory[_STAGE] = int(stage)
        closed = (ProtocolText(f"{stage}>\n"),)
        keys = dict.fromkeys(key for key in _TASK.findall(text) if key.startswith(f"{stage}."))
        children = tuple(
            ChildSpec(
                key,
                until=f"</prompt_{key}>",
                header=(ProtocolText(f"\n<Execution_{stage}>\n"), *_header(key)),
                role="execution",
            )
            for key in keys
        )
        return ForkMove(children, parts=closed) if children else Continue(closed)

    def close(self, child: Thread) -> Parts:
        if child.text.endswith(_TASK_END):
            return (ProtocolText(f"{child.key}>\n"),)
        return (ProtocolText(f"\n{_TASK_END}{child.key}>\n"),)

    def join(self, parent: Thread, children: Sequence[Thread]) -> AppendJoin:
        stage = parent.memory[_STAGE]
        parts: list[Part] = [ProtocolText(f"<Execution_{stage}>\n")]
        for child in children:
            parts += (*_header(child.key), child.body)
        return AppendJoin((*parts, ProtocolText(f"</Execution_{stage}>\n")))

    def refuse(self, thread: Thread, fork: ForkMove, reason: str) -> Move:  # noqa: ARG002
        """Ask for the answer, as published after the last stage."""
        return Continue((ProtocolText(f"{_FINAL}\n"),))

    def answer(self, thread: Thread) -> str:
        """The final answer; without one the last text between tags."""
        _, begun, final = thread.text.rpartition(_FINAL)
        if begun:
            return final.partition(_FINAL_END)[0].strip()
        return next(
            (part.strip() for part in reversed(_MARK.split(thread.text)) if part.strip()), ""
        )


def _header(key: str) -> Parts:
    return (ProtocolText(f"<execution_{key}>\n"),)
