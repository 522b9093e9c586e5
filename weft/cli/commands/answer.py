"""`weft answer`: answers a question of a run that another process has, or that nobody has now."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.commands.options import Debug, JournalPlace, Run
from weft.cli.complaint import complaints
from weft.cli.runs.again import again
from weft.cli.runs.recorded import journal_at
from weft.cli.text import clean

HELP = """Answer what a node of a run asks.

A process that has the run goes on with the answer at once. When nobody has it, the answer is kept
until `weft resume`. `weft runs show RUN` tells what is asked, and what an answer looks like.
"""


def answer(
    run: Run,
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node that asks.")],
    value: Annotated[
        str, typer.Argument(metavar="VALUE", help="Text, y or n, a number, a choice, or JSON.")
    ],
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """See `HELP`."""
    with complaints(debug=debug):
        from weft.cli.answer import parse_answer
        from weft.workflow.runs.answers import Answers

        with journal_at(journal) as opened:
            answers = Answers(opened)
            question = answers.question(run, node)
            taken = answers.give(question, parse_answer(value, question.schema))
        if taken:
            typer.echo(f"answered {clean(question.node)}")
        else:
            name = again(question.run, journal)
            typer.echo(f"kept for {clean(question.node)}; go on with: weft resume {name}")
