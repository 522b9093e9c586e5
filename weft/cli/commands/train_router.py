"""`weft train-router`: trains the predictor of a route from recorded evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.errors import report_errors
from weft.cli.files import check_writable
from weft.cli.journal import journal_at
from weft.cli.options import AsJson, Debug, JournalPlace
from weft.cli.text import clean, duration, json_text, money, plain
from weft.core.errors import InputError

if TYPE_CHECKING:
    from weft.evaluation.statistics import Interval
    from weft.optimisation.router import RouterValidation, RoutingExample
    from weft.planner.choice import TrainedPredictor

HELP = """Train the predictor of a route from recorded evaluations: which model answers best, by the
prompt's text.

Evaluate the same cases with each model (`weft eval`), then name the runs. The file goes into the
workflow: `models: {auto: {use: route, among: [small, big], predictor: ./router.json}}`. With too
little to learn from it abstains: the model that is best on average answers.

\b
Examples:
  weft train-router last 0f3a --out router.json
  weft train-router small-run big-run --metric f1 --node solve --out router.json
"""


def train_router(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Evaluations, or last.")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the predictor goes.", dir_okay=False)
    ],
    metric: Annotated[
        str | None, typer.Option(metavar="METRIC", help="Which score counts; else the main one.")
    ] = None,
    node: Annotated[
        str | None, typer.Option(metavar="NODE", help="Only calls of that node.")
    ] = None,
    as_json: AsJson = False,
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """See `HELP`."""
    with report_errors(debug=debug, as_json=as_json):
        from weft.optimisation.router import (
            routed_cases,
            routing_examples,
            train_router,
            validate_router,
        )
        from weft.workflow.history.run_history import find_run, read_history

        check_writable(out)
        examples: list[RoutingExample] = []
        with journal_at(journal, to_read=True) as opened:
            for run in dict.fromkeys(find_run(opened, text) for text in runs):
                examples += routing_examples(read_history(opened, run), metric, node)
        predictor = train_router(examples)
        in_money = any(each.cost for each in examples)
        try:
            found: RouterValidation | str = validate_router(
                routed_cases(examples, "money" if in_money else "latency")
            )
        except InputError as error:
            found = f"{error.message}: {error.hint}"
        predictor.save(out)
        if as_json:
            typer.echo(json_text(_data(examples, predictor, found)))
        else:
            _print(examples, predictor, found, out, in_money=in_money)


def _data(
    examples: list[RoutingExample], predictor: TrainedPredictor, found: RouterValidation | str
) -> dict[str, Any]:
    return {
        "models": {model: len(of) for model, of in _by_model(examples).items()},
        "abstains": predictor.abstains,
        "validation": plain(found),
    }


def _by_model(examples: list[RoutingExample]) -> dict[str, list[RoutingExample]]:
    found: dict[str, list[RoutingExample]] = {}
    for each in examples:
        found.setdefault(each.model, []).append(each)
    return found


def _print(
    examples: list[RoutingExample],
    predictor: TrainedPredictor,
    found: RouterValidation | str,
    out: Path,
    *,
    in_money: bool,
) -> None:
    typer.echo(f"{clean(str(out))}: learnt from {len(examples)} answers")
    for model, of in _by_model(examples).items():
        score = sum(each.score for each in of) / len(of)
        seconds = sum(each.seconds for each in of) / len(of)
        cost = sum(each.cost for each in of) / len(of)
        figures = f"score {score:.3f}, {duration(seconds)}, {money(cost)} an answer"
        typer.echo(f"  {clean(model)}: {len(of)} answers, {figures}")
    if predictor.abstains:
        typer.echo("it abstains: prompts say too little here, the best model on average answers")
    if isinstance(found, str):
        typer.echo(f"not validated: {found}")
        return
    typer.echo(f"on {found.cases} cases that it had not learnt from:")
    typer.echo(f"  score {_shown(found.router.score)}, of the best that a choice could reach: "
               f"{found.oracle_score:.3f}")  # fmt: skip
    typer.echo(f"  one model for all: {_shown(found.single.score)}; at random: "
               f"{found.random_score:.3f}")  # fmt: skip
    typer.echo(f"  gain over one model: {_shown(found.gain)}")
    typer.echo(f"  a best model was chosen on {_shown(found.router.hits)} of the cases")
    typer.echo(f"  calibration error {found.calibration:.3f}, Brier {found.brier:.3f} "
               f"(by means alone {found.brier_of_means:.3f})")  # fmt: skip
    for weight, point in found.front:
        shown = money(point.cost) if in_money else duration(point.cost)
        key = "money" if in_money else "latency"
        typer.echo(f"  weights: {{{key}: {weight:g}}}: score {point.score.mean:.3f}, {shown}")


def _shown(found: Interval) -> str:
    return f"{found.mean:.3f} ({found.low:.3f} to {found.high:.3f})"
