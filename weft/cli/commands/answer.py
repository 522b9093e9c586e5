"""`weft answer`: answers a question of a run, whether a process has the run or not."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.journal import journal_at, run_reference
from weft.cli.options import Debug, JournalPlace, Run
from weft.cli.text import clean

HELP = """Answer what a node of a run asks.

A process that has the run goes on with the answer at once. When nobody has it, the answer is kept
until `weft resume`. `weft runs show RUN` tells what is asked, and what an answer looks like.

The call of a tool is approved with yes, refused with "no: too much", which its agent reads, and
approved with other arguments by "yes amount=5".
"""


def answer(
    run: Run,
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node that asks.")],
    value: Annotated[
        str, typer.Argument(metavar="VALUE", help="Text, y or n, a number, a choice, JSON.")
    ],
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """See `HELP`."""
    with report_errors(debug=debug):
        from weft.core.ports.queue import queue_of
        from weft.workflow.history.answer_text import parse_answer
        from weft.workflow.history.answers import PendingQuestions, has_worker
        from weft.workflow.history.recorded_workflow import way_on

        with journal_at(journal) as opened:
            answers = PendingQuestions(opened)
            question = answers.question(run, node)
            parsed = parse_answer(value, question.schema, question.arguments)
            is_running = answers.give(question, parsed)
            header = opened.header(question.run)
            is_queued = has_worker(opened, question.run)
            entry = queue_of(opened).entry(question.run) if is_queued else None
        if is_running:
            typer.echo(f"answered {clean(question.node)}")
        elif entry is not None:
            what = f"{clean(entry.flow)}@{entry.terms.version}"
            typer.echo(f"answered {clean(question.node)}; a worker with {what} continues the run")
        else:
            way = clean(way_on(header, run_reference(question.run, journal)))
            typer.echo(f"kept for {clean(question.node)}; go on with: {way}")
