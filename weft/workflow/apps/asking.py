"""Served runs that ask a person: what a client reads, and how its next request continues one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weft.core.errors import InputError, UnknownReference
from weft.core.ids import RunId
from weft.core.ports import ModelRequest
from weft.core.ports.journal import Journal
from weft.core.questions import PendingQuestion
from weft.workflow.history.answer_text import expected, parse_answer
from weft.workflow.history.answers import PendingQuestions

RUN: Final = "run"
ANSWERS: Final = "answers"
_MARK: Final = re.compile(r"\[run (?P<run>\S+) asks\]\s*\Z")


def asking_text(questions: Sequence[Mapping[str, Any]], run: str, continues: bool) -> str:
    """What a run asks, as an answer: its first question, and how to answer it.

    `run` is empty where it is not recorded; `continues`: the next message may be the answer.
    """
    first, more = questions[0], len(questions) - 1
    lines = [str(first["question"])]
    hint = expected(first["schema"])
    if not run:
        lines.append(f"{first['node']} asks that, and nobody can answer: the run is not recorded.")
    elif not continues:
        lines.append(f"Run {run} waits: weft answer {run} {first['node']} VALUE, and weft resume.")
    else:
        more_words = f" {more} more after that." if more else ""
        lines.append(f"Answer with {hint or 'a text'}.{more_words}")
        lines.append(f"[run {run} asks]")
    return "\n".join(lines)


class WrongAnswer(InputError):
    """The text of a chat is no answer to what the run asks, which stays open."""

    def __init__(self, message: str, run: RunId, questions: Sequence[PendingQuestion]) -> None:
        super().__init__(message)
        self.run = run
        self.questions = questions


@dataclass(frozen=True, slots=True)
class ContinuedRun:
    """A run that a request continues, with answers by the node that asks."""

    run: RunId
    answers: Mapping[str, Any] = field(default_factory=dict)


def continued_run(request: ModelRequest, name: str, journal: Journal) -> ContinuedRun | None:
    """The run of the workflow `name` that `request` continues; None: it begins one.

    By its fields `run` and `answers`; else the last message answers the question before it. Blocks
    briefly. Raises: `InputError` for an unknown run or node, or a wrong answer; `WrongAnswer`.
    """
    given, answers = request.extra.get(RUN), request.extra.get(ANSWERS)
    if given is None:
        if answers is not None:
            raise InputError("`answers` of which run?", hint="give its id as `run`")
        return _by_chat(request, name, journal)
    if not isinstance(given, str) or not isinstance(answers or {}, Mapping):
        raise InputError("`run` is the id of a run, and `answers` has values by node")
    run = _run_of(given, name, journal)
    open_ = PendingQuestions(journal)
    found: dict[str, Any] = {}
    for node, value in (answers or {}).items():
        try:
            found[open_.question(run, node).node] = value
        except UnknownReference as error:
            raise InputError(error.message, hint=error.hint) from None
    return ContinuedRun(run, found)


def _by_chat(request: ModelRequest, name: str, journal: Journal) -> ContinuedRun | None:
    if len(request.messages) < 2 or request.messages[-1].role != "user":
        return None
    asked, said = request.messages[-2:]
    match = _MARK.search(asked.content) if asked.role == "assistant" else None
    if match is None:
        return None
    run = _run_of(match["run"], name, journal)
    questions = PendingQuestions(journal).questions(run)
    if not questions:
        return None  # it has been answered and continued elsewhere: a new run
    first = questions[0]
    try:
        value = parse_answer(said.content, first.schema, first.arguments)
    except InputError as error:
        raise WrongAnswer(error.message, run, questions) from None
    return ContinuedRun(run, {first.node: value})


def _run_of(given: str, name: str, journal: Journal) -> RunId:
    """The id of a run of the workflow `name`. Raises: `InputError`."""
    run = RunId(given)
    try:
        flow = journal.summary(run).flow
    except UnknownReference:
        flow = ""
    if flow != name:
        raise InputError(f"{name} has no run {given[:80]!r}", hint="send the whole id")
    return run
