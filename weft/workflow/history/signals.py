"""Signals to a run: values for its `ask` nodes, also before they ask.

A signal is stored as the answer that it is; the run takes it when the node begins.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from weft.core.errors import InputError, UnknownReference
from weft.core.events import HumanAnswered, NodeFinished
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Journal, Letter
from weft.validation import answer_violation
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.spec.nodes import AskNode
from weft.workflow.history.answers import PendingQuestions
from weft.workflow.history.recorded_workflow import recorded_unit
from weft.workflow.history.run_history import read_history

_ENDED: Final = ("succeeded", "partial", "failed", "cancelled")


def send_signal(journal: Journal, run: RunId, node: str, value: Any) -> bool:
    """Leave a value for the `ask` node of a run; true when a process has the run.

    Before the node asks, the last value counts. Blocks briefly. Raises: `UnknownReference` for a
    run or node that is not there; `InputError` for a value that does not fit its schema, a node
    that has ended, and a run that has; `StoreError`.
    """
    summary = journal.summary(run)
    if summary.standing in _ENDED:
        hint = "submit it again, with another key"
        raise InputError(f"the run {run!r} has ended: {summary.standing}", hint=hint)
    if node in summary.asking:
        questions = PendingQuestions(journal)
        return questions.give(questions.question(run, node), value)
    schema = _asks(journal, run)
    if node not in schema:
        hint = choice_hint(node, list(schema)) or "the workflow has no `ask` node at its top level"
        raise UnknownReference(f"{run} has no `ask` node {node!r:.80}", hint=hint)
    if why := answer_violation(value, schema[node]):
        raise InputError(f"the value does not fit: {why}", node=NodeId(node))
    records = (numbered.record for numbered in read_history(journal, run).records)
    if any(isinstance(one, HumanAnswered | NodeFinished) and one.node == node for one in records):
        raise InputError(f"{node!r} has ended: it takes no more values", node=NodeId(node))
    journal.send(run, Letter("answer", NodeId(node), value))
    return summary.standing in ("running", "asking")


def _asks(journal: Journal, run: RunId) -> dict[str, Any]:
    """The schemas of the `ask` nodes at the top level of a run's workflow."""
    nodes = recorded_unit(journal.header(run), Path.cwd()).document.nodes
    return {name: step.output_schema for name, step in nodes.items() if isinstance(step, AskNode)}
