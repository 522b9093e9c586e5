"""Served runs that ask a person: what a client reads, and how its next request continues one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final

from weft.core.errors import InputError, RunBusy, UnknownReference
from weft.core.events import HumanAnswered
from weft.core.ids import RunId, parent_of
from weft.core.ports import ModelRequest
from weft.core.ports.journal import Journal
from weft.core.questions import PendingQuestion
from weft.engine import RunResult
from weft.workflow.document import WorkflowDocument
from weft.workflow.history.answer_text import expected, parse_answer
from weft.workflow.history.answers import PendingQuestions
from weft.workflow.history.run_history import RunHistory, read_history
from weft.workflow.runtime.results.result import FlowResult, flow_result, output_templates

RUN: Final = "run"
ANSWERS: Final = "answers"
_MARK: Final = re.compile(r"\[run (?P<run>\S+) asks(?: (?P<node>\S+))?\]\s*\Z")
SEND_AGAIN: Final = "send the message again for its reply"


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
        lines.append(f"[run {run} asks {first['node']}]")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ContinuedRun:
    """A run that a request continues, with answers by the node that asks.

    `tries_again`: what failed in a run that has ended is tried again; else it has to be open.
    """

    run: RunId
    answers: Mapping[str, Any] = field(default_factory=dict)
    tries_again: bool = False

    def check(self, history: RunHistory) -> None:
        """Raises: `RunBusy` where the claimed run is no longer as it was when the request came."""
        stale = any(node not in history.questions for node in self.answers)
        if stale or (_has_ended(history) and not self.tries_again):
            raise RunBusy(f"{self.run} has gone on meanwhile", hint=SEND_AGAIN)


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that a request does not continue: it asks `questions`. `problem`: what was wrong."""

    run: RunId
    questions: Sequence[PendingQuestion]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that has ended, whose reply is wanted once more."""

    history: RunHistory

    def result(self, document: WorkflowDocument) -> FlowResult:
        """The end of the run, as far as it is recorded; outputs are computed anew."""
        history, ended = self.history, self.history.ended
        assert ended is not None
        about = ended.status, history.outcomes, ended.usage, ended.at_s, ended.reasons
        result = RunResult(history.run, *about)
        inputs = dict(history.header.inputs)
        return flow_result(document, output_templates(document), inputs, result)


PastRun = ContinuedRun | OpenRun | EndedRun


def past_run(request: ModelRequest, name: str, journal: Journal) -> PastRun | None:
    """The run of the workflow `name` that `request` is about; None: it begins one.

    By its fields `run` and `answers`; else by the question that the last reply in the conversation
    has. An answer to a question that has been answered changes nothing: the run's reply is wanted.
    Blocks briefly.

    Raises: `InputError` for an unknown run or node; `RunBusy` while it runs.
    """
    given, answers = request.extra.get(RUN), request.extra.get(ANSWERS)
    if given is None:
        if answers is not None:
            raise InputError("`answers` of which run?", hint="give its id as `run`")
        return _by_chat(request, name, journal)
    if not isinstance(given, str) or not isinstance(answers or {}, Mapping):
        raise InputError("`run` is the id of a run, and `answers` has values by node")
    run = _run_of(given, name, journal)
    open_, history = PendingQuestions(journal), read_history(journal, run)
    found: dict[str, Any] = {}
    for node, value in (answers or {}).items():
        try:
            found[open_.question(run, node).node] = value
        except UnknownReference as error:
            if not _was_answered(history, node):
                raise InputError(error.message, hint=error.hint) from None
    if found or not (answers or _has_reply(history)):
        return ContinuedRun(run, found, tries_again=not found)
    return _as_it_is(run, history, journal)


def _by_chat(request: ModelRequest, name: str, journal: Journal) -> PastRun | None:
    """The run whose question the last reply is; a client may send its user's answer repeatedly."""
    said = list(takewhile(lambda message: message.role == "user", reversed(request.messages)))
    before = request.messages[: len(request.messages) - len(said)][-1:]
    asked = before[0].content if before and before[0].role == "assistant" else ""
    match = _MARK.search(asked)
    if match is None or not said:
        return None
    run = _run_of(match["run"], name, journal)
    questions = PendingQuestions(journal).questions(run)
    question = next((each for each in questions if _is_asked(each, match["node"], asked)), None)
    if question is None:
        return _as_it_is(run, read_history(journal, run), journal)
    try:
        value = parse_answer(said[0].content, question.schema, question.arguments)
    except InputError as error:
        return OpenRun(run, questions, str(error))
    return ContinuedRun(run, {question.node: value})


def _is_asked(question: PendingQuestion, node: str | None, asked: str) -> bool:
    """Whether a reply asks `question`, of `node`, which replies of an older weft do not name."""
    return question.node == node if node else question.question in asked


def _as_it_is(run: RunId, history: RunHistory, journal: Journal) -> PastRun:
    """The run, with nothing new for it. Raises: `RunBusy`."""
    if journal.summary(run).standing == "running":
        raise RunBusy(f"{run} is under way", hint=SEND_AGAIN)
    if questions := PendingQuestions(journal).questions(run):
        return OpenRun(run, questions)
    return EndedRun(history) if _has_ended(history) else ContinuedRun(run)


def _has_ended(history: RunHistory) -> bool:
    return history.ended is not None and history.ended.status != "asking"


def _has_reply(history: RunHistory) -> bool:
    return history.ended is not None and history.ended.status in ("succeeded", "partial")


def _was_answered(history: RunHistory, node: str) -> bool:
    """Whether a question of `node`, or of an approval inside it, has an answer."""
    answered = (event.node for event in history.events if isinstance(event, HumanAnswered))
    return any(node in (each, parent_of(each)) for each in answered)


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
